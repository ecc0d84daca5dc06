"""The questions of a probe: few, small, and with an answer that shows whether the model could do what was asked. Pure.

A picture and a document show that they were read, since nothing else names what is in them.
"""

import re
import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from chat.core.context.prompt import to_model_messages
from chat.core.model.language_model import (
    AssistantMessage,
    FileContent,
    ModelMessage,
    ModelRequest,
    ModelSettings,
    TextContent,
    ToolSpec,
    UserMessage,
)
from chat.core.model.overflow import estimate_request
from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.jsonvalue import JSONObject

ANSWER_TOKENS: Final = 1_024
"""The longest answer to a question; models that think need some of it for that."""

MEDIUM_TOKENS: Final = 1_500
"""The most that providers count for a picture or a page of such a size."""

COUNT: Final = "Count from one to twenty in words, separated by commas."
LOOK_UP: Final = 'Call the tool lookup twice in one answer, for "amber" and for "birch". Say nothing before.'
SEE: Final = "Which colour has this picture? Answer with one word."
READ: Final = "Which word stands in this document? Answer with that word."
CHOOSE: Final = "Name a colour of the rainbow, and how many letters its name has."
REPEATED: Final = "Say which word was repeated above. Answer with one word."

COLOUR: Final = re.compile(r"purple|violet|magenta|lilac|indigo", re.IGNORECASE)
WORD: Final = "heron"
SCHEMA: Final[JSONObject] = {
    "type": "object",
    "properties": {"colour": {"type": "string"}, "letters": {"type": "integer"}},
    "required": ["colour", "letters"],
    "additionalProperties": False,
}
TOOL: Final = ToolSpec(
    name="lookup",
    description="Look a word up in the dictionary.",
    input_schema={"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
)
ASKED: Final = 8
"""The most questions of one probe."""

_SIDE: Final = 64
_PURPLE: Final = bytes((150, 30, 220))
_SETTINGS: Final = ModelSettings(max_output_tokens=ANSWER_TOKENS)


def plain() -> ModelRequest:
    """A question for an answer in several pieces."""
    return _request(COUNT)


def with_tools() -> ModelRequest:
    """A question for two calls at once."""
    return replace(_request(LOOK_UP), tools=(TOOL,))


def with_results(answer: Message, *, without_data: bool = False) -> ModelRequest:
    """The same with the answer and the results of its calls; `without_data`: without what the provider sent along."""
    asked: Message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": LOOK_UP}]}
    messages: Sequence[ModelMessage] = to_model_messages([asked, answer])
    if without_data:
        messages = [_bare(message) if isinstance(message, AssistantMessage) else message for message in messages]
    return ModelRequest(system="", messages=tuple(messages), tools=(TOOL,), settings=_SETTINGS)


def with_picture() -> ModelRequest:
    """A question about a picture."""
    return _request(SEE, FileContent(media_type="image/png", data=picture(), filename="colour.png"))


def with_document() -> ModelRequest:
    """A question about a PDF document."""
    return _request(READ, FileContent(media_type="application/pdf", data=document(), filename="word.pdf"))


def with_schema() -> ModelRequest:
    """A question whose answer has a schema of which the words say nothing."""
    request = _request(CHOOSE)
    return replace(request, settings=replace(request.settings, response_schema=SCHEMA))


def larger_than(tokens: int) -> ModelRequest:
    """A question of more tokens than so many: each word is one at least."""
    return _request(f"{'word ' * tokens}\n\n{REPEATED}")


def most_tokens(overflow_tokens: int) -> tuple[int, int]:
    """The tokens that a whole probe may read and write at most, by our estimate."""
    small = [plain(), with_tools(), with_tools(), with_tools(), with_picture(), with_document(), with_schema()]
    read = sum(estimate_request(request) for request in small) + 2 * ANSWER_TOKENS + 2 * MEDIUM_TOKENS
    return read + (estimate_request(larger_than(overflow_tokens)) if overflow_tokens else 0), ASKED * ANSWER_TOKENS


def picture() -> bytes:
    """A picture of one colour, as PNG."""
    rows = (b"\x00" + _PURPLE * _SIDE) * _SIDE
    pieces = ((b"IHDR", struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows)))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_png_piece(*piece) for piece in (*pieces, (b"IEND", b"")))


def _png_piece(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def document() -> bytes:
    """A PDF document of one page with one word."""
    drawn = f"BT /F1 48 Tf 72 600 Td ({WORD}) Tj ET".encode()
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >>>>>>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    )
    made, places = b"%PDF-1.4\n", list[int]()
    for number, body in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    head = b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>" % (size, table, size)
    return b"%s%s\nstartxref\n%d\n%%%%EOF\n" % (made, head, len(made))


def _request(text: str, *files: FileContent) -> ModelRequest:
    message = UserMessage(content=(TextContent(text=text), *files))
    return ModelRequest(system="", messages=(message,), settings=_SETTINGS)


def _bare(message: AssistantMessage) -> AssistantMessage:
    return AssistantMessage(content=tuple(replace(item, provider_metadata={}) for item in message.content))
