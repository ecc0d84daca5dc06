"""Messages that a person sent while an answer was written, and that the answer took in: parts of the answer.

Such a part stands between two steps. Who reads the conversation meets there what the person said; who shows it may show
a message of the person's.
"""

from collections.abc import Iterable, Iterator
from typing import Final, cast

from sessions_app.core.messages.shapes import Message, Part
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

STEER: Final = "data-think-steer"
"""Type of the part. Its `data`: `{id, parts, metadata?, sentAt?}` of the message, its `id` the message's."""


def steered(part: Part) -> Message | None:
    """The message that a part holds; nothing for any other part."""
    if part.get("type") != STEER:
        return None
    data: JSONValue = part.get("data")
    if not isinstance(data, dict) or not isinstance(data.get("parts"), list):
        return None
    said: JSONObject = {**data, "id": str(data.get("id") or ""), "role": "user"}
    said["parts"] = [each for each in data["parts"] if isinstance(each, dict)]
    return cast("Message", said)


def steered_in(message: Message) -> list[Message]:
    """The messages that an answer took in, in order."""
    found = (steered(part) for part in message["parts"])
    return [said for said in found if said is not None]


def with_steered(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts of a message, those of what it took in among them."""
    for part in parts:
        said = steered(part)
        if said is None:
            yield part
        else:
            yield from said["parts"]
