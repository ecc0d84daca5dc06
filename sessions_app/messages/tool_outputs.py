"""Outputs of tools as a path has them."""

from typing import Final

from django.db.models import TextField
from django.db.models.functions import Cast

from sessions_app.core.messages.tool_states import ToolState
from sessions_app.models import Message
from thinkproject.kernel.jsonvalue import JSONValue

MAX_LOOKED_AT: Final = 20  # messages with calls of the tool, none of which gave an output


def newest_output(session_id: str, tool_name: str) -> JSONValue:
    """The output of the last call of a tool on the shown path that gave one; nothing without. One query.

    It walks the whole path: for what is asked for now and then.
    """
    kind = f"tool-{tool_name}"
    path = Message.objects.on_path(session_id, None, 0).annotate(text=Cast("content", TextField()))
    rows = path.filter(text__contains=f'"{kind}"').order_by("-depth")
    for content in rows.values_list("content", flat=True)[:MAX_LOOKED_AT]:
        for part in reversed(content["parts"]):
            if part.get("type") == kind and part.get("state") == ToolState.OUTPUT_AVAILABLE:
                output: JSONValue = part.get("output")
                return output
    return None
