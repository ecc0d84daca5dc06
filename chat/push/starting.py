"""News that may concern a person who is elsewhere: noted in the transaction that commits it, sent by a fiber.

Nothing is started on a site without devices. Ids alone travel: rows of fibers are read by more people.
"""

from typing import Any, Final

from chat.core.durable_names import NOTICE_FIBER, PUSH_FIBER
from chat.models import NoticeKind, PushDevice
from fibers.services import start_fiber
from thinkproject.kernel.jsonvalue import JSONObject

PAUSE_SECONDS: Final = 3.0
"""What a person answers or sees within it is not pushed."""
MAX_RETRIES: Final = 8


def note(kind: NoticeKind, about: str, owner_id: Any, **ids: str | int) -> None:
    """Note that something happened; in the caller's transaction. One query on a site without devices.

    `about`: what it is about, once: a second note of the same is the same. `ids`: what the fiber reads the rest by.
    """
    if PushDevice.objects.exists():
        start_fiber(
            NOTICE_FIBER,
            {"kind": kind.value, **ids},
            key=f"notice:{kind.value}:{about}",
            owner_id=owner_id,
            delay_seconds=PAUSE_SECONDS,
            max_retries=MAX_RETRIES,
        )


def start_push(device: PushDevice, news: JSONObject, *, about: str) -> None:
    """Have news pushed to one device, once for each `about`. `news`: as `note` has it."""
    start_fiber(
        PUSH_FIBER,
        {**news, "device_id": device.pk},
        key=f"push:{device.pk}:{about}",
        owner_id=device.user_id,
        share=f"push:{device.user_id}",
        max_retries=MAX_RETRIES,
    )
