"""Signatures of webhooks: Ed25519, with a key that is derived from `SECRET_KEY`.

While a former secret is among `SECRET_KEY_FALLBACKS`, its public key is still published.
"""

import base64
import hashlib
import time
from functools import lru_cache

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.utils.crypto import salted_hmac

from thinkproject.kernel.jsonvalue import JSONObject

HEADER = "Webhook-Signature"


def sign(body: bytes) -> str:
    """The value of the header for a body that is sent now."""
    key, now = _key(str(settings.SECRET_KEY)), int(time.time())
    signature = key.sign(str(now).encode() + b"." + body)
    return f"t={now},kid={_kid(key)},ed25519={_base64(signature)}"


def signing_facts() -> JSONObject:
    """Algorithm and id of the key that signs now."""
    return {"alg": "ed25519", "kid": _kid(_key(str(settings.SECRET_KEY)))}


def public_keys() -> JSONObject:
    """The public keys, as a JWK set."""
    keys = [_key(str(secret)) for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)]
    return {
        "keys": [
            {"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": _kid(key), "x": _base64(_public(key))}
            for key in keys
        ]
    }


@lru_cache(maxsize=8)
def _key(secret: str) -> Ed25519PrivateKey:
    seed = salted_hmac("think.durable_streams.webhooks", b"ed25519", secret=secret, algorithm="sha256").digest()
    return Ed25519PrivateKey.from_private_bytes(seed)


def _kid(key: Ed25519PrivateKey) -> str:
    return "ds_" + hashlib.sha256(_public(key)).hexdigest()[:16]


def _public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
