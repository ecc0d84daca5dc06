"""Signatures of webhooks: HMAC-SHA256 with a shared secret (the draft), Ed25519 with published keys (the protocol).

Which of the two a receiver takes is decided by what it was made with, never by what comes. Both are over the time, a
dot and the bytes of the body; an older or later time than five minutes is refused.
"""

import base64
import hashlib
import hmac
import time
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from chat.webhooks.outgoing import ServerLine
from thinkproject.kernel.jsonvalue import load
from tools_app.fetching.errors import FetchFailed

HEADER: Final = "Webhook-Signature"
TOLERANCE_SECONDS: Final = 300
KEYS_SECONDS: Final = 300.0
"""How long published keys are kept; one that is not among them is looked for again, every ten seconds at most."""
LOOK_SECONDS: Final = 10.0


class SignatureRefused(Exception):
    """A webhook was not signed by the server that it should come from."""


class Verifier:
    """Checks signatures. With a `secret` those of the draft, else those of keys at `jwks_url`."""

    def __init__(self, line: ServerLine, *, secret: str = "", jwks_url: str = "") -> None:
        self._line = line
        self._secret = secret.encode()
        self._jwks_url = jwks_url
        self._keys: dict[str, Ed25519PublicKey] = {}
        self._read_at = float("-inf")

    async def check(self, header: str, body: bytes) -> None:
        """Errors: `SignatureRefused`; also where the keys cannot be read."""
        parts = dict(part.strip().partition("=")[::2] for part in header.split(","))
        try:
            signed_at = int(parts["t"])
        except (KeyError, ValueError) as error:
            raise SignatureRefused("the signature has no time") from error
        if abs(time.time() - signed_at) > TOLERANCE_SECONDS:
            raise SignatureRefused("the signature is too old or too new")
        signed = f"{signed_at}.".encode() + body
        if self._secret:
            expected = hmac.new(self._secret, signed, hashlib.sha256).hexdigest()
            if not hmac.compare_digest(expected.encode(), parts.get("sha256", "").encode()):
                raise SignatureRefused("the signature is not of this body and secret")
            return
        key = await self._key(parts.get("kid", ""))
        try:
            key.verify(_decoded(parts.get("ed25519", "")), signed)
        except (InvalidSignature, ValueError) as error:
            raise SignatureRefused("the signature is not of this body and key") from error

    async def _key(self, kid: str) -> Ed25519PublicKey:
        age = time.monotonic() - self._read_at
        if age > (KEYS_SECONDS if kid in self._keys else LOOK_SECONDS):
            self._read_at = time.monotonic()
            try:
                self._keys = _keys_in(load((await self._line.get(self._jwks_url)).body))
            except (FetchFailed, ValueError, KeyError, TypeError) as error:
                raise SignatureRefused("the keys of the server could not be read") from error
        if kid not in self._keys:
            raise SignatureRefused("the server has published no such key")
        return self._keys[kid]


def _keys_in(value: Any) -> dict[str, Ed25519PublicKey]:
    listed = [each for each in value["keys"] if (each.get("kty"), each.get("crv")) == ("OKP", "Ed25519")]
    return {str(each["kid"]): Ed25519PublicKey.from_public_bytes(_decoded(each["x"])) for each in listed}


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
