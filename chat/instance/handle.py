"""An instance as server code holds it: talk to it, stop it, read it, without a socket.

    answer = await AgentHandle(key).chat("Summarise this.", on_event=print)

The turn is an ordinary one: stored, streamed to every connected client, durable. The caller may go away; the turn goes
on.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from typing_extensions import Unpack

from chat.agent.base import Agent, InstanceKey
from chat.agent.methods.approvals import ApprovalMethods
from chat.agent.methods.background import FiberMethods
from chat.agent.methods.context import ContextMethods
from chat.agent.methods.extensions import ExtensionMethods
from chat.agent.methods.mcp_servers import McpServerMethods
from chat.agent.methods.messages import MessageMethods
from chat.agent.methods.model_choice import ModelMethods
from chat.agent.methods.queue import QueueMethods
from chat.agent.methods.schedules import ScheduleMethods
from chat.agent.methods.sessions import SessionMethods
from chat.agent.methods.sub_agents import SubAgentMethods
from chat.agent.methods.turns import SubmissionMethods, TurnMethods, to_message
from chat.errors import TurnFailed
from chat.instance.file_review import FileReview
from chat.instance.instance import Instance
from chat.instances.notifications import turn_group
from chat.instances.waiting import wait_until
from chat.instances.workspaces import InstanceWorkspace, attach_workspace, detach_workspace
from chat.reads import snapshots
from chat.runtime import undo
from chat.runtime.turn_callbacks import CallbackCaller, report_end, run_turn
from chat.runtime.undo import Undone, UndoPreview
from chat.sub_agents.service import child_key
from chat.turns.admission.admit import TurnRequest
from chat.turns.admission.intake import Program
from chat.turns.admission.overlap import delivery_of
from chat.turns.admission.stop import cancel_turn, clear_instance
from chat.turns.execution.after_turn import response_key
from chat.turns.state.parking import answer_wait
from chat.turns.state.status import TurnStatus
from chat.turns.tools.caller_calls import CallerTools, ExtraTools
from fibers.core.states import TERMINAL
from fibers.selectors import find_by_key
from sessions_app.core.messages.shapes import Message, NewMessage
from thinkproject.kernel.aio import db
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONValue
from tools_app.core.files.workspace import Workspace
from tools_app.workspace.services import DEFAULT_NAME, checked_name
from tools_app.workspace.turn_files import ChangedFile, changed_in_turn

__all__ = ["AgentHandle", "ChatResult", "StreamCallback", "TypedMessage"]

PARKED_SECONDS: Final = 60.0
"""How long `chat` waits for a turn that waits for an answer itself, where its caller says nothing."""


class StreamCallback(Protocol):
    """Callbacks of `chat`. Each method is optional, and may be sync or async.

    `on_start(request_id)` first; `on_event(text)` per chunk, its JSON; then `on_done()` once the answer is stored, or
    `on_error(text)`. After a stop neither comes. `on_reset()`: the log was lost, the chunks come again from the first.
    """


@dataclass(frozen=True, slots=True)
class TypedMessage:
    """A message that a person wrote in a program: `!script` in it is run where the class has a `user_shell`."""

    message: str | NewMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatResult:
    """The result of a turn. `message` is the stored answer, `None` when it is empty."""

    request_id: str
    turn_id: str
    status: TurnStatus
    message: Message | None
    error: str | None = None

    @property
    def content(self) -> str:
        """The text of the answer: its text parts, joined."""
        parts = [] if self.message is None else self.message["parts"]
        return "".join(part["text"] for part in parts if part["type"] == "text")


class AgentHandle(
    TurnMethods,
    SubmissionMethods,
    SessionMethods,
    ModelMethods,
    ApprovalMethods,
    McpServerMethods,
    SubAgentMethods,
    MessageMethods,
    ExtensionMethods,
    FiberMethods,
    QueueMethods,
    ScheduleMethods,
):
    """One instance, with the methods of its agent. Holds an address, no rows: cheap to make, valid across restarts."""

    def __init__(self, key: InstanceKey) -> None:
        self.key = key
        self.instance = Instance(key)

    def sub_agent(self, agent: type[Agent] | str, name: str) -> "AgentHandle":
        """Give a sub-agent of this instance, made by its first message. Code of the server asks no `sub_agents`.

        Errors: `AgentNotFound` for an agent that is not served, an impossible name, and one that lies too deep.
        """
        return AgentHandle(child_key(self.key, agent if isinstance(agent, str) else agent.route_name(), name))

    @property
    def parent_agent(self) -> "AgentHandle | None":
        """The instance above this one; `None` for a root."""
        return None if self.key.parent is None else AgentHandle(self.key.parent)

    @property
    def context(self) -> ContextMethods:
        """The context blocks of the conversation, to read and write."""
        return ContextMethods(self.instance.open_context)

    @property
    def workspace(self) -> Workspace:
        """The files of this conversation: its own workspace in the database. Nothing is made before the first write."""
        return self.open_workspace()

    def open_workspace(self, name: str = DEFAULT_NAME) -> Workspace:
        """Open the workspace that the conversation knows by a name. Errors: `WorkspaceNameInvalid`."""
        return InstanceWorkspace(self.key, name=checked_name(name))

    async def attach_workspace(
        self, other: "InstanceKey | AgentHandle | str", *, name: str = DEFAULT_NAME, can_write: bool = True
    ) -> str:
        """Let this conversation use the workspace of another one, under a name; again, to change `can_write`.

        `other`: the other conversation, whose workspace of this name is meant, or the id of a workspace. Only what
        belongs to the same person, or has no owner, can be attached. Returns the id of the workspace. Durable when it
        returns; it lives as long as any conversation uses it.
        Errors: `WorkspaceNotFound` for that of another person, too; `WorkspaceExists` where this conversation has
        another one of this name already, which it has from its first write on.
        """
        found = other.key if isinstance(other, AgentHandle) else other
        return await db(lambda: attach_workspace(self.key, found, name=name, can_write=can_write))

    async def detach_workspace(self, workspace_id: str) -> bool:
        """End what `attach_workspace` began; false where it was not attached. The workspace and its files stay."""
        return await db(detach_workspace, self.key, workspace_id)

    async def chat(
        self,
        message: "str | NewMessage | TypedMessage",
        callback: Any = None,
        *,
        signal: asyncio.Event | None = None,
        waits_for_hook: bool = True,
        timeout_seconds: float | None = None,
        delivery: str | None = None,
        **extra: Unpack[ExtraTools],
    ) -> ChatResult:
        """Send a message and wait for the answer; returns after `on_chat_response`.

        `delivery`: what it does while another turn runs: `queue` waits for its turn (as without one), `steer` is taken
        in by the answer that is being written, and the result is that answer, `interrupt` stops it and is the next.
        Shape: a text, or a UI message of role user; `TypedMessage` where a person wrote it here. `callback`: see
        `StreamCallback`. Setting `signal` stops the turn;
        the partial answer is kept. A hook that calls this must not wait for the hooks behind it.
        `timeout_seconds`: how long this waits for the end; the turn goes on afterwards. `None`: while it works without
        limit, and for a minute once it waits for a person or a program itself; infinity for as long as it takes.
        `extra`: tools for this turn alone, which run in this process: `tools=`, or declarations in `client_tools=` with
        `on_client_tool_call=`, which is given each call (`ToolCall`). A tool of the agent of the same name wins.
        Durability: a call waits for this process, whatever becomes of the worker, and fails when it does not answer
        within the tool's time and half a minute; it is never run twice.
        Errors: `TurnWaits`, which names the question, and `TurnTimeout` when that time is over; `NestedTurn` from
        inside a turn of the same instance; `TurnFailed` when the turn fails and the callback
        has no `on_error`; `InputInvalid` for another word, `ToolDeclarationInvalid` for tools that cannot be given to a
        turn.
        """
        tools = CallerTools(extra)
        is_stopped = signal is not None and signal.is_set()
        said = message.message if isinstance(message, TypedMessage) else message
        request = TurnRequest(
            intake=Program(messages=[to_message(said)], is_typed=isinstance(message, TypedMessage)),
            request_id=new_id("req"),
            is_stopped=is_stopped,
            delivery=delivery_of(delivery),
        )
        caller = CallbackCaller(
            callback=callback,
            signal=signal,
            seconds=timeout_seconds,
            parked_seconds=PARKED_SECONDS if timeout_seconds is None else None,
        )
        ended = await run_turn(self.key, request, caller, tools=tools)
        if waits_for_hook:
            await _wait_for_hook(ended.turn_id)
        answer = await db(snapshots.answer_of, ended.turn_id)
        if ended.status is TurnStatus.ERROR and not hasattr(callback, "on_error"):
            raise TurnFailed(ended.error_text)
        await report_end(callback, ended)
        return ChatResult(
            request_id=ended.request_id,
            turn_id=ended.turn_id,
            status=ended.status,
            message=answer,
            error=ended.error_text or None,
        )

    async def cancel_chat(self, request_id: str) -> bool:
        """Stop a turn by its request id; `False` when there is none that runs."""
        turn = await db(snapshots.find_turn, self.key, request_id=request_id)
        return turn is not None and await db(cancel_turn, turn.turn_id)

    async def answer_wait(self, call_id: str, value: JSONValue = None, *, wait: str) -> bool:
        """Answer a tool call's wait; see `ToolContext.wait`. `wait`: the key given by the tool, or the kind.

        Durability: committed when this returns. False when it was answered before or its time is over.
        Errors: `CallNotFound`.
        """
        return await db(lambda: answer_wait(self.key, call_id, value, wait=wait))

    async def clear(self) -> None:
        """Empty the conversation."""
        await db(clear_instance, self.key)

    async def configure(self, config: Any) -> None:
        """Store the instance's private configuration, as its own `configure` does. Errors: `ConfigInvalid`."""
        await self.instance.state.save_config(config)

    async def get_config(self) -> Any:
        """Read the instance's private configuration, as its own `get_config` does. Errors: `ConfigInvalid`."""
        return await self.instance.state.load_config()

    async def preview_undo(self, turn_id: str = "") -> UndoPreview:
        """Look at what an undo would do. Without an id: of the last turn that is shown. Errors: `UndoImpossible`."""
        return await db(lambda: undo.preview_undo(undo.find_turn(self.key, turn_id)))

    async def undo(
        self,
        turn_id: str = "",
        *,
        files: bool = True,
        messages: bool = True,
        overwrite: Mapping[int, int] | None = None,
    ) -> Undone:
        """Take a turn back with all that followed it; without an id, the last one that is shown. Nothing is deleted.

        Files that another hand has changed stay, unless `overwrite` has their id with the version that the preview
        showed. Durability: one transaction. Errors: `UndoBusy`, `UndoImpossible`.
        """
        return await db(
            lambda: undo.undo_turn(
                undo.find_turn(self.key, turn_id), files=files, messages=messages, actor_id=None, choices=overwrite
            )
        )

    async def redo(self, *, overwrite: Mapping[int, int] | None = None) -> Undone:
        """Take the newest undo back, until there is another turn. Errors: as `undo`."""
        return await db(lambda: undo.redo(undo.find_redoable(self.key), actor_id=None, choices=overwrite))

    async def changed_files(self, turn_id: str = "", *, step: int | None = None, limit: int = 200) -> list[ChangedFile]:
        """Files that a turn, one of its steps (from 0), or without an id the whole conversation has changed."""
        if turn_id:
            turn = await db(undo.find_turn, self.key, turn_id)
            return await db(lambda: changed_in_turn(turn.pk, step=step, limit=limit))
        return await db(lambda: undo.changed_in_conversation(undo.find_conversation(self.key), limit=limit))

    @property
    def review(self) -> FileReview:
        """The review of what turns changed in files: keep it, have it back as it was, or take it as a patch."""
        return FileReview(self.key)

    async def messages(self) -> list[Message]:
        """Read the shown path, queued messages last."""
        return await db(snapshots.current_transcript, self.key)


async def _wait_for_hook(turn_id: str) -> None:
    """Wait until the response hook's fiber, if there is one, has ended."""

    async def has_ended() -> bool:
        fiber = await db(find_by_key, response_key(turn_id))
        return fiber is None or fiber.status in TERMINAL

    await wait_until(has_ended, group=turn_group(turn_id))
