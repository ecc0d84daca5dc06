"""Messages of an instance in its room: the database side of `chat.agent.methods.messages`."""

from dataclasses import dataclass
from typing import Final

from chat.agent.base import InstanceKey
from chat.agent.values.messages import AgentCall
from chat.errors import AgentCallFailed, AgentCallRefused, InputInvalid
from chat.instances.notifications import turn_group
from chat.instances.rows import ensure_instance, find_instance
from chat.instances.waiting import wait_until
from chat.models import AgentMessage, Turn
from chat.turns.inbox.answering import as_answer, attach, forget_wait
from chat.turns.inbox.pausing import go_on, pause
from chat.turns.inbox.sending import Letter, chain_of, member_of, room_of, send
from chat.turns.state.inbox_rows import waiting_messages
from fibers.context import current_fiber
from fibers.errors import Parked
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, fingerprint
from thinkproject.kernel.phrases import Phrase
from tools_app.core.guard.reach import is_reading, note_here
from tools_app.guard.standings import texts_of

MAX_REQUEST_ID: Final = 64


@dataclass(frozen=True, slots=True)
class InstanceInbox:
    """The room of an instance, for its agent and code. `sender`: its route name where its agent speaks, else empty."""

    key: InstanceKey
    sender: str = ""

    async def send(self, target: str, text: str, request_id: str) -> int:
        """Put a message into an inbox."""
        if len(request_id) > MAX_REQUEST_ID:
            raise InputInvalid(Phrase("A request id has at most {limit} characters.", limit=MAX_REQUEST_ID))
        letter = Letter(target=target, content=text, sender=self.sender, request_id=request_id)
        row: AgentMessage = await db(send, room_of(self.key), letter)
        return row.pk

    async def watch(self, request_id: str, seconds: float) -> str:
        """Wait for the answer to a message."""
        group = turn_group(request_id)
        if not await wait_until(lambda: db(self._has_reply, request_id), group=group, timeout_seconds=seconds):
            raise _silent("", seconds, request_id)
        reply = await db(self._reply, request_id)
        assert reply is not None
        return _text(as_answer(reply))

    async def has_pending(self, agent: str) -> bool:
        """Whether anything waits in an inbox."""
        return await db(self._has_pending, agent)

    async def pause(self, agent: str, *, ends: bool) -> bool:
        """Pause an agent, or end its pause."""
        return await db(self._pause, agent, ends=ends)

    async def call(self, call: AgentCall) -> str:
        """Ask an agent, and wait for its reply: parked. Errors: `AgentCallRefused`, `AgentCallFailed`."""
        request_id = f"req_{fingerprint([call.key, call.target])[:24]}"
        room_id = await db(self._ask, call, request_id)
        fiber = current_fiber()
        if fiber is None:
            raise AgentCallRefused(Phrase("Agents are asked within a turn only; use `send_message` elsewhere."))
        try:
            end = await call.wait(request_id)
        except Parked as parked:
            [wait] = parked.waits
            answer = await db(attach, room_id, request_id, fiber.fiber_id, wait.key)
            if answer is None:
                raise
        else:
            if end.has_expired:
                await db(forget_wait, room_id, request_id)
                raise _silent(call.target, call.seconds, request_id)
            answer = end.answer
        await self._note_texts(call.target)
        return _text(answer)

    def _ask(self, call: AgentCall, request_id: str) -> str:
        turn = Turn.objects.filter(pk=call.turn_id).only("options").first()
        turn_ids = [call.turn_id, *(() if turn is None else turn.options.get("goes_on_from", ()))]
        letter = Letter(
            target=call.target,
            content=call.content,
            sender=self.key.agent,
            request_id=request_id,
            turn_id=call.turn_id,
            waits=True,
            chain=chain_of(self.key, turn_ids),
        )
        return str(send(room_of(self.key), letter).room_id)

    async def _note_texts(self, target: str) -> None:
        """Pass on that the other's conversation holds texts of strangers: its answer may repeat them."""
        if not is_reading():
            return
        member = await db(find_instance, member_of(room_of(self.key), target))
        if member is not None and member.session_id is not None:
            for _, text in await db(texts_of, member.session_id):
                note_here(text.origin, text.source)

    def _pause(self, agent: str, *, ends: bool) -> bool:
        member = ensure_instance(member_of(room_of(self.key), agent) if agent else self.key)
        return go_on(member) if ends else pause(member)

    def _has_pending(self, agent: str) -> bool:
        member = find_instance(member_of(room_of(self.key), agent) if agent else self.key)
        return member is not None and waiting_messages(member).exists()

    def _has_reply(self, request_id: str) -> bool:
        return self._reply(request_id) is not None

    def _reply(self, request_id: str) -> AgentMessage | None:
        room = find_instance(room_of(self.key))
        return None if room is None else AgentMessage.objects.filter(room=room, in_reply_to=request_id).first()


def _text(answer: JSONObject) -> str:
    if "error" in answer:
        raise AgentCallFailed(str(answer["error"]))
    return str(answer["response"])


def _silent(target: str, seconds: float, request_id: str) -> AgentCallFailed:
    return AgentCallFailed(
        Phrase(
            "Agent {agent!r} did not answer within {seconds:g} s (request {id}).",
            agent=target,
            seconds=seconds,
            id=request_id,
        )
    )
