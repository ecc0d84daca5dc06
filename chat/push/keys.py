"""The key that signs pushes of this site (VAPID, RFC 8292): made once, stored encrypted, read by every process."""

from typing import Final

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from django.conf import settings
from django.db import transaction

from chat.models import PushKey
from chat.push.encryption import CURVE, public_bytes, to_base64
from thinkproject.kernel.secrets import decrypt, encrypt

_VALID_SECONDS: Final = 12 * 3600
"""The standard allows a day."""


def public_key() -> str:
    """The public key that browsers bind a device to; the key is made where there is none yet.

    **Concurrency:** of two that make it at once the first one counts.
    """
    known = PushKey.objects.values_list("public_key", flat=True).first()
    return known or _made()


def signed_for(audience: str, *, subject: str, now: int) -> str:
    """The header `Authorization` for a push service.

    `audience`: its origin; `subject`: how its operators reach those of this site, an address of `https:` or `mailto:`;
    `now`: seconds. Errors: `SecretUnreadable`.
    """
    own = public_key()
    private = decrypt(PushKey.objects.values_list("private_key", flat=True).get())
    claims = {"aud": audience, "exp": now + _VALID_SECONDS, "sub": subject}
    token = jwt.encode(claims, load_pem_private_key(private.encode(), None), algorithm="ES256")  # type: ignore[arg-type]  # any kind of key
    return f"vapid t={token}, k={own}"


def subject_of(origin: str) -> str:
    """The address at which a push service reaches those who run a site."""
    return origin if origin.startswith("https://") else f"mailto:{settings.DEFAULT_FROM_EMAIL}"


def _made() -> str:
    key = ec.generate_private_key(CURVE)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    with transaction.atomic():
        row, _made_now = PushKey.objects.get_or_create(
            id=1, defaults={"private_key": encrypt(pem), "public_key": to_base64(public_bytes(key.public_key()))}
        )
    return row.public_key
