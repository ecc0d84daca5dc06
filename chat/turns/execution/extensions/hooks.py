"""Hooks of extensions: notified of a turn after the agent's own hooks, in load order.

Each gets a snapshot of its own, cut to what it may see (`tools_app/core/extensions/snapshots.py`). A hook that fails
or takes longer than five seconds is logged, and the turn goes on. Chunks are collected and handed over with the end of
a step: one run for each chunk would cost more than the answer.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from chat.agent.think import Think
from chat.core.loop.hooks import ChunkContext, StepRecord, ToolCallContext, ToolOutcome
from chat.turns.execution.turn_facts import TurnFacts
from chat.turns.guarding.turn_guard import GuardOfCall, TurnGuard
from chat.turns.guarding.turn_rules import TurnRules
from chat.user_code.extension_services import AgentServices
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, byte_size
from tools_app.core.extensions.snapshots import redacted, snapshot
from tools_app.core.guard.reach import note_here
from tools_app.core.guard.rules import Spot
from tools_app.core.permissions.file_rules import FileRules, under_file_rules
from tools_app.core.tool import CallGuard
from tools_app.extensions.bridge import HostBridge
from tools_app.extensions.host import ExtensionPlace
from tools_app.extensions.loaded import LoadedExtension
from tools_app.extensions.runs import run_hook

logger = logging.getLogger(__name__)

NAMES: Final = {
    "before_tool_call": "beforeToolCall",
    "after_tool_call": "afterToolCall",
    "on_step_finish": "onStepFinish",
    "on_chunk": "onChunk",
}
"""Hooks of the agent's class to those of extensions."""
BEFORE_TURN: Final = "beforeTurn"
CHUNK_BYTES: Final = 300_000
"""Chunks are handed over before the end of a step where there are so many."""


@dataclass(slots=True)
class ExtensionHooks:
    """The hooks of the extensions of one turn."""

    agent: Think
    extensions: Sequence[LoadedExtension]
    facts: TurnFacts
    guard: TurnGuard
    _chunks: list[JSONObject] = field(default_factory=list, init=False)
    _chunk_bytes: int = field(default=0, init=False)

    def watches(self, hook: str) -> bool:
        """Whether an extension subscribes to this hook of the agent's class."""
        return hook in NAMES and any(NAMES[hook] in each.surface.hooks for each in self.extensions)

    async def notify(self, hook: str, argument: Any) -> None:
        """Tell the extensions that a hook was called."""
        if isinstance(argument, ChunkContext):
            chunk = snapshot(argument.chunk)
            self._chunks.append({"type": argument.chunk["type"], "chunk": chunk})
            self._chunk_bytes += byte_size(chunk)
            if self._chunk_bytes > CHUNK_BYTES:
                await self.flush()
            return
        if hook == "on_step_finish":
            await self.flush()
        await self._tell(NAMES[hook], [_event(argument)])

    async def flush(self) -> None:
        """Hand over the chunks that were collected."""
        chunks, self._chunks, self._chunk_bytes = self._chunks, [], 0
        if chunks:
            await self._tell("onChunk", chunks)

    async def before_turn(self, event: JSONObject) -> list[tuple[LoadedExtension, JSONObject]]:
        """Ask the extensions about a turn: what each wants, in load order."""
        given = await self._tell(BEFORE_TURN, [event])
        return [(extension, value) for extension, value in given if isinstance(value, dict)]

    async def _tell(self, hook: str, events: Sequence[JSONObject]) -> list[tuple[LoadedExtension, JSONValue]]:
        return [
            (extension, await self._call(extension, hook, events))
            for extension in self.extensions
            if hook in extension.surface.hooks
        ]

    async def _call(self, extension: LoadedExtension, hook: str, events: Sequence[JSONObject]) -> JSONValue:
        key = self.facts.key
        bridge = HostBridge(
            extension=extension,
            services=AgentServices(self.agent),
            place=ExtensionPlace(owner_id=key.owner_id, scope=key.instance_id, turn_id=self.facts.turn_id),
            during=hook,
            note_origin=note_here,
            check_egress=self._guard_of(hook).check_egress,
        )
        own = frozenset(extension.tool_names)
        try:
            with under_file_rules(await self._file_rules(extension)):
                return await run_hook(bridge, hook, [redacted(event, extension.granted, own) for event in events])
        except (ThinkError, TimeoutError) as error:
            reason = error.message if isinstance(error, ThinkError) else "it took too long"
            extra = {"action": "extension_hook_failed", "hook": hook, "extension": extension.name, "reason": reason}
            logger.warning("a hook of an extension failed", extra=extra)
            return None

    async def _file_rules(self, extension: LoadedExtension) -> FileRules | None:
        """The rules for the files that a hook reaches, whose call no person has approved."""
        if extension.granted.workspace == "none":
            return None
        facts = self.facts
        return await TurnRules(facts.instance, facts.key, has_stored=facts.has_rules).for_files(is_approved=False)

    def _guard_of(self, hook: str) -> CallGuard:
        """The guard for what a hook sends: it closes whatever a person has approved."""
        return GuardOfCall(self.guard, Spot(call_id=f"hook {hook}")).begun()


def _event(argument: Any) -> JSONObject:
    """The snapshot of what the agent's hook was called with."""
    match argument:
        case ToolCallContext():
            shown: Mapping[str, Any] = {
                "toolName": argument.tool_name,
                "callId": argument.call_id,
                "input": argument.input,
                "stepNumber": argument.step_number,
            }
        case ToolOutcome():
            shown = {
                "toolName": argument.tool_name,
                "callId": argument.call_id,
                "input": argument.input,
                "success": argument.success,
                "output": argument.output,
                "error": argument.error,
                "durationMs": argument.duration_ms,
                "stepNumber": argument.step_number,
            }
        case StepRecord():
            shown = {
                "stepNumber": argument.step_number,
                "text": argument.text,
                "reasoning": argument.reasoning,
                "toolCalls": argument.tool_calls,
                "toolResults": argument.tool_results,
                "finishReason": argument.finish_reason,
                "usage": argument.usage,
                "modelId": argument.model_name,
            }
        case _:
            shown = {}
    made = snapshot(shown)
    assert isinstance(made, dict)
    return made
