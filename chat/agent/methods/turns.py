"""Methods for a conversation: run and continue turns, submit work, add messages, stop turns, wait.

`Think` and `AgentHandle` have the same methods over the same operations, so a method works alike in a hook, a callable,
a fiber and a view. Methods that wait are refused inside a turn of the same conversation, where they would wait for
themselves; `submit_messages` and `add_messages` work there. Nothing here touches the database.
"""

import asyncio
from typing import Any, Literal, TypeAlias

from chat.agent.ports import InstancePort
from chat.agent.values.turns import SKIPPED, MessageFunction, MessageInput, SavedTurn, Submission
from chat.errors import InputInvalid
from sessions_app.core.messages.shapes import NewMessage
from sessions_app.core.messages.tree import Leaf
from thinkproject.kernel.jsonvalue import JSONObject

Mode: TypeAlias = Literal["wait", "stream", "submit"]


class TurnMethods:
    """Speaking, adding, stopping, waiting."""

    instance: InstancePort

    async def save_messages(
        self, messages: MessageInput | MessageFunction, *, signal: asyncio.Event | None = None
    ) -> SavedTurn:
        """Post a user message from code and wait for the answer. Connected clients see both.

        Several messages are placed together and answered once. A function is called when the turn starts, with the
        messages at that time, and returns the messages to send, without those that exist already. Setting
        `signal` stops the turn; one that is set before stores the messages and asks no model.
        Durability: accepted messages are answered whatever becomes of the caller. A function lives in this process
        alone: until it has given its words nothing is stored, and if the process dies its turn is skipped.
        Errors: `NestedTurn` from inside a turn of this conversation; what the function raises. A failed turn is a
        status.
        """
        if callable(messages):
            return await self.instance.turns.run(messages, signal=signal)
        words = to_messages(messages)
        return await self.instance.turns.run(words, signal=signal) if words else SKIPPED

    async def continue_last_turn(
        self, body: JSONObject | None = None, *, signal: asyncio.Event | None = None
    ) -> SavedTurn:
        """Have the model go on after its last answer, in a new message of its own, and wait for it.

        Skipped, without a request id, when the conversation does not end with an answer. `body` is what hooks see as
        the request's custom fields; the last request's by default. Errors: `NestedTurn`.
        """
        return await self.instance.turns.run(None, body=body, signal=signal)

    async def run_turn(
        self,
        messages: MessageInput | MessageFunction | None = None,
        *,
        mode: Mode = "wait",
        continuation: bool = False,
        callback: Any = None,
        signal: asyncio.Event | None = None,
    ) -> SavedTurn | Submission:
        """Run a turn in one of three ways: one entry for all of the above.

        `wait` for its end; `stream` its chunks to a callback as well (`StreamCallback`); `submit` it, which returns a
        `Submission` at once. With `continuation` there are no messages. Errors: as the single methods; `InputInvalid`
        for a combination that does not exist, for instance a function with `submit`.
        """
        if continuation == (messages is not None):
            raise InputInvalid("Give messages, or continuation=True; not both.")
        if (mode == "stream") != (callback is not None):
            raise InputInvalid("A callback belongs to the mode 'stream', and 'stream' needs one.")
        if mode == "submit":
            if messages is None or callable(messages):
                raise InputInvalid("Only messages can be submitted: functions and continuations cannot be stored.")
            words = to_messages(messages)
            return await self.instance.submissions.submit(words, key=None, metadata={})
        if messages is None or callable(messages):
            return await self.instance.turns.run(messages, callback=callback, signal=signal)
        words = to_messages(messages)
        return await self.instance.turns.run(words, callback=callback, signal=signal) if words else SKIPPED

    async def add_messages(
        self,
        messages: MessageInput,
        *,
        parent: str | Leaf | None = Leaf.ACTIVE,
        mode: Literal["append", "upsert"] = "append",
    ) -> list[str]:
        """Store messages of any role, in one chain, without asking a model; returns their ids. Clients are notified.

        They go to the end of the shown path, below the message `parent`, or with `None` to a new beginning. Those that
        are there already stay as they are; with `upsert` their content is replaced, their place never. Works inside a
        turn: what is added there comes before the turn's answer. Errors: `MessageNotFound` for an unknown parent,
        `MessageInvalid`; then nothing is stored.
        """
        return await self.instance.turns.add_messages(to_messages(messages), parent=parent, is_upsert=mode == "upsert")

    async def abort_request(self, request_id: str, reason: str | None = None) -> bool:
        """Stop a turn by its request id; `False` when there is none that runs or waits. The reason is logged."""
        return await self.instance.turns.stop(request_id, reason)

    async def abort_all_requests(self) -> bool:
        """Stop every turn that runs or waits; `False` when there is none. Partial answers are kept."""
        return await self.instance.turns.stop(None, None)

    async def has_pending_interaction(self) -> bool:
        """Whether a tool call of the shown path waits for a client's result or a person's approval."""
        return await self.instance.turns.has_pending_interaction()

    async def wait_until_stable(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - an answer, no error
        """Wait until no turn runs or waits and no interaction is pending; `False` when the time is over first.

        Units: seconds; `None` waits for ever. Errors: `NestedTurn`.
        """
        return await self.instance.turns.wait_until_stable(timeout)

    async def compact(self, instructions: str = "") -> str:
        """Have the middle of this conversation summarised for the model, behind the turns that wait; nothing is lost.

        Returns the id of the fiber that does it. Works inside a turn. `instructions` say what matters in the summary.
        Errors: `QuotaExceeded`. A failure is reported to `on_compaction_error` and to clients.
        """
        return await self.instance.turns.compact(instructions)


class SubmissionMethods:
    """Handing work in: it is accepted now and done in its turn, whatever becomes of the caller."""

    instance: InstancePort

    async def submit_messages(
        self, messages: MessageInput, *, idempotency_key: str | None = None, metadata: JSONObject | None = None
    ) -> Submission:
        """Hand messages in for an answer and return at once. Works inside a turn.

        Durability: accepted means stored. They enter the conversation when their turn starts, all of them or none. The
        same key again returns what was accepted before. Errors: `InputInvalid` without messages; `TurnConflict` when
        the key belongs to a request that is no submission.
        """
        words = to_messages(messages)
        return await self.instance.submissions.submit(words, key=idempotency_key, metadata=metadata or {})

    async def inspect_submission(self, submission_id: str) -> Submission | None:
        """Read a submission of this conversation; `None` for an unknown one."""
        return await self.instance.submissions.find(submission_id)

    async def list_submissions(self, limit: int = 50) -> list[Submission]:
        """Read the newest submissions of this conversation, newest first."""
        return await self.instance.submissions.newest(limit)

    async def cancel_submission(self, submission_id: str) -> bool:
        """Stop a submission; `False` if it has ended or is unknown. If it had not started, its messages are dropped."""
        return await self.instance.submissions.cancel(submission_id)


def to_messages(words: MessageInput) -> list[NewMessage]:
    """Convert the caller's input to UI messages; a plain text becomes a user message."""
    if isinstance(words, str | dict):
        words = [words]
    return [to_message(word) for word in words]


def to_message(word: str | NewMessage) -> NewMessage:
    """A UI message of a text."""
    return {"role": "user", "parts": [{"type": "text", "text": word}]} if isinstance(word, str) else word
