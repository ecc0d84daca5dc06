"""An effect, an action's call, and what tests look at of it."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.utils import timezone

from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.actions.ledger import Effect
from tools_app.actions.run_action import RunAction
from tools_app.calls.run import execute
from tools_app.core.action_rules import ActionRules
from tools_app.core.tool import Tool, ToolContext
from tools_app.core.tool_calls import ToolCall, ToolResult
from tools_app.models import ActionRecord

EFFECT = Effect(
    scope="s1",
    owner_id=None,
    action="pay",
    key="A-1",
    is_explicit=True,
    input={"order": "A-1"},
    timeout_seconds=30,
    undo="cancel",
    turn_id="t1",
    call_id="c1",
)
EVENTS: list[Any] = []


@dataclass
class Replies:
    """Parts of a reply, without a conversation."""

    parts: list[JSONObject] = field(default_factory=list)

    async def resolve(self) -> list[JSONObject]:
        return list(self.parts)

    def restore(self, parts: list[JSONObject]) -> None:
        self.parts = list(parts)

    def drop(self) -> None:
        self.parts = []


async def allow(_rules: ActionRules, _given: JSONObject) -> str | None:
    return None


async def call(
    tool: Tool,
    *,
    call_id: str = "c1",
    turn_id: str = "t1",
    scope: str = "s1",
    replies: Replies | None = None,
    **given: Any,
) -> JSONValue:
    """The result of a call, as the executor gives it."""
    context = ToolContext(
        call_id=call_id,
        tool_name=tool.name,
        user_id=None,
        agent="shop",
        instance_name="room",
        turn_id=turn_id,
        attempt=1,
        idempotency_key=f"{turn_id}:{call_id}",
        act=RunAction(scope=scope, owner_id=None, turn_id=turn_id, authorize=allow, replies=replies or Replies()),
    )
    asked = ToolCall(call_id=call_id, tool_name=tool.name, input=given)
    results = [item async for item in execute(tool, asked, context)]
    assert isinstance(results[-1], ToolResult)
    return results[-1].output


def error_of(output: JSONValue) -> str:
    assert isinstance(output, dict)
    error = output["error"]
    assert isinstance(error, dict)
    return str(error["name"])


async def row(**found: Any) -> ActionRecord:
    return await db(lambda: ActionRecord.objects.get(**found))


async def expire() -> None:
    """Let every lease be over."""
    await db(lambda: ActionRecord.objects.update(lease_until=timezone.now() - timedelta(seconds=1)))
