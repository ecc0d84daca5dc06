"""The answer to a call that another process runs, as it is stored until the turn reads it."""

import base64
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, byte_size
from tools_app.core.guard.rules import SeenText
from tools_app.core.guard.rules import texts_in as texts_of_details
from tools_app.core.tool_calls import ToolResult
from tools_app.core.tool_output import Media, ToolOutput
from tools_app.errors import ToolError

MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
"""The most that one answer may be as JSON, with its files."""


def answer_of(result: ToolResult) -> JSONObject:
    """The answer to a wait that gives this result."""
    answer: JSONObject = {"output": result.output, "is_error": result.is_error}
    if result.details:
        answer["details"] = result.details
    if result.media:
        answer["media"] = [
            {"name": item.name, "data": base64.b64encode(item.data).decode("ascii")} for item in result.media
        ]
    if byte_size(answer) > MAX_ANSWER_BYTES:
        text = f"The tool gave more than {MAX_ANSWER_BYTES // 2**20} MiB, which is too much for one answer."
        return {"output": text, "is_error": True}
    return answer


def output_in(answer: JSONValue, *, unreadable: str) -> ToolOutput:
    """The output that an answer gives. Errors: `ToolError` for a failure, and with `unreadable` for no answer."""
    if not isinstance(answer, dict) or "output" not in answer:
        raise ToolError(unreadable)
    if answer.get("is_error"):
        raise ToolError(str(answer["output"]))
    details = answer.get("details", {})
    media = [Media(name=item["name"], data=base64.b64decode(item["data"])) for item in answer.get("media", ())]
    return ToolOutput(
        value=answer["output"], title=details.get("title", ""), metadata=details.get("metadata", {}), media=media
    )


def texts_in(answer: JSONValue) -> list[SeenText]:
    """The texts of others that an answer passes on."""
    details = answer.get("details") if isinstance(answer, dict) else None
    return texts_of_details(details) if isinstance(details, dict) else []
