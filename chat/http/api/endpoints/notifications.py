"""API operations on what is pushed to the caller: wishes, devices, a test."""

from typing import Any

from asgiref.sync import async_to_sync
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import get_language
from ninja import Router, Status

from chat.errors import InputInvalid
from chat.http.api.authentication import caller_of
from chat.http.api.schemas.notifications import (
    NoticeChoicesOut,
    NoticeChoicesPatch,
    NotificationsOut,
    PushDeviceIn,
    PushDeviceOut,
)
from chat.models import NoticeChoices, NoticeKind, PushDevice
from chat.push import devices
from chat.push.choices import change_choices, choices_of
from chat.push.keys import public_key
from chat.push.starting import start_push
from thinkproject.kernel.filling import filled
from thinkproject.kernel.phrases import Phrase
from thinkproject.kernel.zones import is_zone
from tools_app.fetching.errors import FetchFailed
from tools_app.fetching.posting import check_receiver
from tools_app.mcp.conf import mcp_settings

router = Router(tags=["notifications"])


@router.get("/notifications", response=NotificationsOut, operation_id="get_notifications")
def notifications(request: HttpRequest) -> NotificationsOut:
    """Your wishes about pushes, and your devices. With the key of this site, which a browser needs for a new one."""
    user = caller_of(request).user
    return NotificationsOut(
        public_key=public_key(),
        choices=_choices(choices_of(user.pk)),
        devices=[_device(row) for row in devices.devices_of(user.pk)],
    )


@router.patch("/notifications", response=NoticeChoicesOut, operation_id="change_notifications")
def notifications_change(request: HttpRequest, data: NoticeChoicesPatch) -> NoticeChoicesOut:
    """Change what is pushed to you. 422 for one end of the quiet hours without the other, and for an unknown zone."""
    changes: dict[str, Any] = data.dict(exclude_unset=True)
    if ("quiet_from" in changes) != ("quiet_until" in changes) or (
        (changes.get("quiet_from") is None) != (changes.get("quiet_until") is None)
    ):
        raise InputInvalid("Quiet hours have a beginning and an end.")
    if any(changes[name] is None for name in ("decision", "answer", "schedule", "zone") if name in changes):
        raise InputInvalid("Only the quiet hours may be null.")
    if not is_zone(changes.get("zone", "UTC")):
        raise InputInvalid(Phrase("There is no time zone {name!r}.", name=changes["zone"]))
    return _choices(change_choices(caller_of(request).user.pk, **changes))


@router.post("/notifications/devices", response={201: PushDeviceOut}, operation_id="add_push_device")
def device_add(request: HttpRequest, data: PushDeviceIn) -> object:
    """Push to a browser from now on; the same browser again is the same device.

    Its address has to be public and begin with `https://`. It is removed when you sign out there, and when its push
    service no longer knows it.
    """
    try:
        async_to_sync(check_receiver)(data.endpoint, mcp_settings.private_networks)
    except FetchFailed as error:
        raise InputInvalid(error.message) from error
    session = getattr(request, "session", None)
    row = devices.add_device(
        caller_of(request).user.pk,
        devices.NewDevice(
            name=data.name,
            endpoint=data.endpoint,
            public_key=data.public_key,
            auth_secret=data.auth_secret,
            language=get_language() or "",
            origin=request.build_absolute_uri("/").rstrip("/"),
            session_key=(session.session_key or "") if session is not None else "",
        ),
    )
    return Status(201, _device(row))


@router.delete("/notifications/devices/{device_id}", response={204: None}, operation_id="remove_push_device")
def device_remove(request: HttpRequest, device_id: str) -> object:
    """Push to it no more."""
    devices.remove_device(caller_of(request).user.pk, device_id)
    return Status(204, None)


@router.post("/notifications/devices/{device_id}/test", response={204: None}, operation_id="test_push_device")
def device_test(request: HttpRequest, device_id: str) -> object:
    """Push a test to it, at most once a minute."""
    row = devices.find_device(caller_of(request).user.pk, device_id)
    start_push(row, {"kind": NoticeKind.TEST.value}, about=f"test:{timezone.now():%Y%m%d%H%M}")
    return Status(204, None)


def _choices(row: NoticeChoices) -> NoticeChoicesOut:
    return filled(NoticeChoicesOut, row)


def _device(row: PushDevice) -> PushDeviceOut:
    return PushDeviceOut(
        id=row.pk, name=row.name, fingerprint=row.fingerprint, created_at=row.created_at, used_at=row.used_at
    )
