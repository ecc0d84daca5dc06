"""`done`: a tool with which a model says that its work is finished; its summary is the answer where there is no text.

    def get_tools(self):
        return [done]

    def before_turn(self, context):
        return TurnConfig(stop_when=is_done)

The run ends with the call: the model is not asked again.
"""

from collections.abc import Sequence
from typing import Final

from chat.core.loop.hooks import StepRecord
from chat.threads.messages import DONE
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.tool import Tool, tool


def _finish(summary: str) -> JSONObject:
    """Finish the task. Call it once, when everything is done, with a summary of what was done for the user."""
    return {"summary": summary}


done: Final[Tool] = tool(name=DONE, read_only=True)(_finish)
"""The tool: `{summary}`, which it gives back."""


def is_done(steps: Sequence[StepRecord]) -> bool:
    """Whether the last step called `done`: a condition for `stop_when`."""
    return bool(steps) and any(call.get("toolName") == DONE for call in steps[-1].tool_calls)
