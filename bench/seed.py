"""`python -m bench.seed COUNT ...`: store straight conversations of so many messages; prints names and ids as JSON.

Runs within an installation, as `tests.acceptance.people` does. Rows are written as the services would leave them.
"""

import json
import os
import sys
from typing import TYPE_CHECKING

import django

if TYPE_CHECKING:
    from sessions_app.models import Message

TEXT = "A sentence of an ordinary length, as people and models write them all day long. " * 4
USER = "alice"


def main(counts: list[int]) -> None:
    """Write to the database of the installation that the environment names."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings")
    django.setup()
    from django.db import connection  # noqa: PLC0415 - after the set-up

    made = {str(count): make_conversation(count) for count in counts}
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    print(json.dumps(made))


def make_conversation(count: int) -> dict[str, str]:
    """Store one conversation of the user's."""
    from django.contrib.auth.models import User  # noqa: PLC0415 - after the set-up

    from chat.agent import InstanceKey  # noqa: PLC0415 - after the set-up
    from chat.instance_rows import ensure_instance  # noqa: PLC0415 - after the set-up
    from sessions_app.models import Message, Session  # noqa: PLC0415 - after the set-up

    owner = User.objects.get(username=USER)
    key = InstanceKey(owner_id=owner.pk, agent="assistant", name=f"long-{count}")
    instance = ensure_instance(key)
    first = (Message.objects.order_by("-pk").values_list("pk", flat=True).first() or 0) + 1
    Message.objects.bulk_create(
        (new_message(first, index, str(instance.session_id)) for index in range(count)), batch_size=2_000
    )
    Session.objects.filter(pk=instance.session_id).update(active_leaf_id=first + count - 1)
    reset_sequence(Message)
    return {"name": key.name, "id": instance.pk}


def new_message(first: int, index: int, session_id: str) -> "Message":
    """One row of the conversation."""
    from django.utils import timezone  # noqa: PLC0415 - after the set-up

    from sessions_app.models import Message  # noqa: PLC0415 - after the set-up
    from thinkproject.kernel.jsonvalue import JSONObject, byte_size  # noqa: PLC0415 - after the set-up

    message: JSONObject = {
        "id": f"{session_id}-{index}",
        "role": ("user", "assistant")[index % 2],
        "parts": [{"type": "text", "text": TEXT}],
    }
    return Message(
        pk=first + index,
        session_id=session_id,
        message_id=message["id"],
        parent_id=first + index - 1 if index else None,
        depth=index,
        role=message["role"],
        content={"parts": message["parts"]},
        byte_size=byte_size(message),
        placed_at=timezone.now(),
    )


def reset_sequence(model: type) -> None:
    """Have the next row numbered after those that came with numbers."""
    from django.core.management.color import no_style  # noqa: PLC0415 - after the set-up
    from django.db import connection  # noqa: PLC0415 - after the set-up

    with connection.cursor() as cursor:
        for sql in connection.ops.sequence_reset_sql(no_style(), [model]):
            cursor.execute(sql)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]])
