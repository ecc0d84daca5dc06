"""Secrets in the database: tokens and passwords that must be read again, encrypted.

The keys are derived from `THINK_ENCRYPTION_KEYS`, or from Django's `SECRET_KEY` and `SECRET_KEY_FALLBACKS` where that
is empty. The first one encrypts, all of them decrypt: a new key goes first, and the old one stays until every row was
written anew. The database alone gives none of them away.
"""

import base64
import functools

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from thinkproject.kernel.conf_kernel import secret_settings
from thinkproject.kernel.errors import Unavailable

_PURPOSE = b"think-for-django secrets in the database, version 1"


class SecretUnreadable(Unavailable):
    """A stored secret cannot be decrypted: the site's key has changed. Enter it again."""

    http_status = 500
    retryable = False


def encrypt(text: str) -> str:
    """Encrypt a text, for a `TextField`. Another call gives another token."""
    return _cipher(_sources()).encrypt(text.encode()).decode()


def decrypt(token: str) -> str:
    """Read what `encrypt` gave. Errors: `SecretUnreadable` for anything else, and under other keys."""
    try:
        return _cipher(_sources()).decrypt(token.encode()).decode()
    except InvalidToken as error:
        raise SecretUnreadable from error


def _sources() -> tuple[str, ...]:
    return tuple(secret_settings.keys) or (settings.SECRET_KEY, *map(str, settings.SECRET_KEY_FALLBACKS))


@functools.lru_cache(maxsize=8)
def _cipher(sources: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(_key(source)) for source in sources])


def _key(source: str) -> bytes:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE).derive(source.encode())
    return base64.urlsafe_b64encode(derived)
