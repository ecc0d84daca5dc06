"""Encryption of a push for one browser: RFC 8291 over RFC 8188, with the primitives of `cryptography`.

A push service carries the result and cannot read it. Pure: randomness comes in as arguments.
"""

import base64
import binascii
import string
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

CURVE: Final = ec.SECP256R1()
SALT_BYTES: Final = 16
AUTH_BYTES: Final = 16
MAX_TEXT_BYTES: Final = 2_000
"""Push services take 4,096 bytes; what is sent here is a sentence and an address."""
_RECORD_BYTES: Final = 4_096
_LETTERS: Final = frozenset(string.ascii_letters + string.digits + "-_")
_LAST: Final = b"\x02"
"""Ends the text of the last record; a record has no other padding."""


def to_base64(data: bytes) -> str:
    """Base64 for addresses, without padding, as the standards of pushes have it."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def from_base64(text: str) -> bytes:
    """Bytes of such a text. Errors: `ValueError`."""
    if not set(text) <= _LETTERS:
        raise ValueError("this is no base64 for addresses")
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def public_bytes(key: ec.EllipticCurvePublicKey) -> bytes:
    """A public key as pushes carry it: the uncompressed point, 65 bytes."""
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def read_public_key(data: bytes) -> ec.EllipticCurvePublicKey:
    """A public key from its point. Errors: `ValueError` for what is no point of the curve."""
    return ec.EllipticCurvePublicKey.from_encoded_point(CURVE, data)


def encrypt(
    text: bytes, *, to: bytes, auth: bytes, salt: bytes, sender: ec.EllipticCurvePrivateKey | None = None
) -> bytes:
    """The body of a push, with the header of `aes128gcm`.

    `to`: the browser's public key; `auth`: its secret; `salt`: 16 random bytes; `sender`: a key for this push alone,
    made here where none is given. Errors: `ValueError` for a key that is none, and a text that is too long.
    """
    if len(text) > MAX_TEXT_BYTES:
        raise ValueError("the text of a push is too long")
    own = sender or ec.generate_private_key(CURVE)
    own_public = public_bytes(own.public_key())
    shared = own.exchange(ec.ECDH(), read_public_key(to))
    secret = _derived(shared, salt=auth, info=b"WebPush: info\x00" + to + own_public, length=32)
    key = _derived(secret, salt=salt, info=b"Content-Encoding: aes128gcm\x00", length=16)
    nonce = _derived(secret, salt=salt, info=b"Content-Encoding: nonce\x00", length=12)
    header = salt + _RECORD_BYTES.to_bytes(4, "big") + bytes([len(own_public)]) + own_public
    return header + AESGCM(key).encrypt(nonce, text + _LAST, None)


def _derived(secret: bytes, *, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=info).derive(secret)
