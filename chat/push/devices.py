"""Devices that are pushed to: added by the browser, listed, removed; they end with the sign-in they came with."""

import hashlib
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from chat.account_errors import PushDeviceNotFound
from chat.errors import InputInvalid
from chat.models import PushDevice
from chat.push.encryption import AUTH_BYTES, from_base64, read_public_key
from thinkproject.kernel.owner_lock import lock_owner
from thinkproject.kernel.phrases import Phrase

MAX_DEVICES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDevice:
    """A device as its browser gives it. `session_key`: of the sign-in, empty for a token."""

    name: str
    endpoint: str
    public_key: str
    auth_secret: str
    language: str
    origin: str
    session_key: str = ""


def devices_of(user_id: Any) -> list[PushDevice]:
    """The devices of a person, the newest first."""
    return list(PushDevice.objects.filter(user_id=user_id).order_by("-created_at", "-pk"))


def fingerprint_of(endpoint: str) -> str:
    """The name by which a device is found: its address is a secret of the browser's."""
    return hashlib.sha256(endpoint.encode()).hexdigest()


def check_keys(new: NewDevice) -> None:
    """Errors: `InputInvalid` for keys that no browser gives."""
    try:
        read_public_key(from_base64(new.public_key))
        is_right = len(from_base64(new.auth_secret)) == AUTH_BYTES
    except ValueError as error:
        raise InputInvalid("The keys of this device are not those of a browser.") from error
    if not is_right:
        raise InputInvalid("The keys of this device are not those of a browser.")


@transaction.atomic
def add_device(user_id: Any, new: NewDevice) -> PushDevice:
    """Push to a device from now on. The same browser again is the same device, also where another person had it.

    Its address has been checked. Errors: `InputInvalid` for wrong keys, and beyond `MAX_DEVICES`.
    """
    check_keys(new)
    lock_owner(user_id)
    found = PushDevice.objects.filter(fingerprint=fingerprint_of(new.endpoint))
    found.exclude(user_id=user_id).delete()  # another person used this browser before
    if not found.exists() and PushDevice.objects.filter(user_id=user_id).count() >= MAX_DEVICES:
        raise InputInvalid(Phrase("You have {limit} devices already. Remove one of them first.", limit=MAX_DEVICES))
    row, _made = PushDevice.objects.update_or_create(
        fingerprint=fingerprint_of(new.endpoint),
        defaults={
            "user_id": user_id,
            "name": new.name,
            "endpoint": new.endpoint,
            "public_key": new.public_key,
            "auth_secret": new.auth_secret,
            "language": new.language,
            "origin": new.origin,
            "session_hash": session_hash(new.session_key),
        },
    )
    return row


def find_device(user_id: Any, device_id: str) -> PushDevice:
    """A device of a person's. Errors: `PushDeviceNotFound`, also for one of another's."""
    row = PushDevice.objects.filter(pk=device_id, user_id=user_id).first()
    if row is None:
        raise PushDeviceNotFound
    return row


def remove_device(user_id: Any, device_id: str) -> None:
    """Push to it no more. Errors: `PushDeviceNotFound`."""
    find_device(user_id, device_id).delete()


def forget_devices_of_session(session_key: str) -> None:
    """Push no more to the devices that came with a sign-in which has ended."""
    if session_key:
        PushDevice.objects.filter(session_hash=session_hash(session_key)).delete()


def session_hash(session_key: str) -> str:
    """A sign-in, as a device keeps it: nothing that opens a session."""
    return hashlib.sha256(session_key.encode()).hexdigest() if session_key else ""


def note_used(device_id: str) -> None:
    """A push has reached the service of this device."""
    PushDevice.objects.filter(pk=device_id).update(used_at=timezone.now())
