"""Calls that code makes within a call of the model: asked about, run and shown as the model's own calls are.

A question about one is a row like any other, so that the socket, the API, the admin and the pages answer it in the same
way. Its turn is parked meanwhile. When it goes on the row is the truth: a wait that has ended says only that it is
worth reading.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

from chat.core.context.result_files import is_seen
from chat.files.tool_outputs import MAX_FILES, NOT_KEPT, keep_files, seen_files
from chat.files.views import files_for_models
from chat.instances.notifications import notify_conversation
from chat.turns.admission.continuation import EXPIRED_TEXT
from chat.turns.conf import turn_settings
from chat.turns.execution.journal import hand_out
from chat.turns.execution.reviewing import may_review, review
from chat.turns.execution.tool_call.ask import question
from chat.turns.execution.tool_call.call import CallingTurn, TurnCall
from chat.turns.execution.tool_call.decide import decide
from chat.turns.execution.tool_call.keep import place_of
from chat.turns.execution.tool_call.perform import perform
from chat.turns.execution.tool_call.report import report
from chat.turns.execution.turn_facts import TurnFacts
from chat.turns.guarding.turn_guard import GuardOfCall
from fibers.context import FiberContext
from fibers.waits import Wait
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.calls.selectors import expired_call, find_inner_call
from tools_app.calls.services import Actor, abandon_call, begin_inner_call, close_inner_calls
from tools_app.core.guard.rules import ORIGIN, Spot, noted, texts_in
from tools_app.core.inner_calls import CallDecision
from tools_app.core.questions import question_of, title_of
from tools_app.core.tool import AskedCall, Tool, ToolContext
from tools_app.core.tool_calls import CallStatus, ToolCall, ToolPause, ToolProgress, ToolResult
from tools_app.core.tool_output import Media
from tools_app.models import ApprovalEventKind, ToolCallRecord

APPROVAL: Final = "approval"
NOT_ENDED: Final = "The code that made this call ended before it did."
_APPROVED: Final = (CallStatus.APPROVED, CallStatus.RUNNING)


@dataclass(slots=True, kw_only=True)
class TurnInnerCalls:
    """The calls within one call of a turn: the `inner` of its `ToolContext`, and with `ask` its `asker`."""

    turn: CallingTurn
    outer: ToolCall
    turn_id: str  # that made the outer call: this one, or one that this one continues
    guard: GuardOfCall = field(init=False)  # for the outer call
    facts: TurnFacts = field(init=False)
    fiber: FiberContext = field(init=False)
    _has_asked: bool = field(init=False, default=False)
    _file_count: int = field(init=False, default=0)
    _kept: dict[str, JSONObject] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Take what the turn has."""
        self.facts, self.fiber = self.turn.facts, self.turn.fiber
        self.guard = GuardOfCall(self.turn.guard, Spot(message_id=self.message_id, call_id=self.outer.call_id))

    async def ask(self, asked: AskedCall) -> CallDecision:
        """Have a person decide about a call. Errors: `Parked` while no person has."""
        self._has_asked = True
        row = await db(find_inner_call, self.facts.turn_id, asked.call.call_id)
        if row is None:
            pause = await question(self._within(asked.tool, asked.call, asked.context))
            if isinstance(pause, ToolResult):
                return CallDecision(is_approved=False, refused=pause)
            row = await db(self._hand_out, asked.call, pause)
        row = await self._decided(row, asked.tool)
        if row.status not in _APPROVED:
            return CallDecision(is_approved=False, reason=str(row.output or ""))
        await db(self._begin, row.pk)
        return CallDecision(is_approved=True, edited_input=row.edited_input)

    async def review(self, tool: Tool, call: ToolCall) -> JSONObject | None:
        """The note of a model's review that lets a call run; nothing where a person has to decide."""
        if not may_review(self.turn.agent, tool):
            return None
        return await review(self.turn.agent, self.facts, tool, call, self.turn.view.messages)

    async def run(
        self, tool: Tool, call: ToolCall, context: ToolContext, *, is_approved: bool
    ) -> AsyncIterator[ToolProgress | ToolResult]:
        """Run a call between the agent's hooks."""
        context = replace(context, is_approved=is_approved)
        if is_approved and context.guard is not None:
            context = replace(context, guard=context.guard.approved())
        this = replace(self._within(tool, call, context), is_approved=is_approved)
        decided = await decide(this)
        result = decided if isinstance(decided, ToolResult) else ToolResult(output=None)
        if isinstance(decided, TurnCall):
            async for item in perform(decided):
                if isinstance(item, ToolResult):
                    result = item
                else:
                    yield item
        await report(this, result)
        yield result

    def _within(self, tool: Tool, call: ToolCall, context: ToolContext) -> TurnCall:
        return TurnCall(turn=self.turn, call=call, found=tool, context=context, turn_id=self.turn_id)

    async def keep(self, call: ToolCall, result: ToolResult) -> JSONObject:
        """Store the files of a result: at most as many of all calls together as of one call of a model."""
        kept: JSONObject = {"reply": list(result.reply)} if result.reply else {}
        if texts := texts_in(result.details):
            kept[ORIGIN] = [text.to_json() for text in texts]
        if not result.media:
            return kept
        media = result.media[: max(MAX_FILES - self._file_count, 0)]
        self._file_count += len(media)
        place = place_of(self.facts.key, self.turn_id, call)
        entries = await db(keep_files, place, media) if media else []
        self.turn.prompt.add_files(seen_files(entries, media))
        return {**kept, "attachments": [*entries, *_refused(result.media[len(media) :])]}

    def deliver(self, call_id: str, kept: JSONObject) -> None:
        """Have the outer call's result have this."""
        for text in texts_in(kept):
            self.guard.note(text.origin, text.source)
        if call_id not in self._kept:
            self._kept[call_id] = kept
            self._file_count = max(self._file_count, len(self._attachments()))

    async def complete(self, result: ToolResult) -> ToolResult:
        """The outer call's result with what its calls gave; a model may be shown their files."""
        attachments = self._attachments()
        reply = [part for kept in self._kept.values() for part in kept.get("reply", ())]
        texts = [text for kept in self._kept.values() for text in texts_in(kept)]
        if texts:
            origins = [text.to_json() for text in noted([*texts_in(result.details), *texts])]
            result = replace(result, details={**result.details, ORIGIN: origins})
        if not attachments and not reply:
            return result
        await self._read_again(attachments)
        details = {**result.details, "attachments": attachments} if attachments else result.details
        return replace(result, details=details, reply=(*result.reply, *reply))

    async def close(self, *, was_cut: bool) -> None:
        """Settle what the outer call has left open now that it has ended. No statement where no person was asked.

        `was_cut`: an earlier attempt may have asked.
        """
        if self._has_asked or was_cut:
            await db(self._close)

    @property
    def message_id(self) -> str:
        """The answer that the outer call is in: this turn's, or the one that this turn continues."""
        is_own = self.turn_id == self.facts.turn_id
        return self.facts.assistant_id if is_own else self.facts.leaf_id or ""

    def _attachments(self) -> list[JSONObject]:
        return [entry for kept in self._kept.values() for entry in kept.get("attachments", ())]

    async def _read_again(self, attachments: Sequence[JSONObject]) -> None:
        """Read the files that an earlier attempt has stored: a model may be shown them in this turn."""
        known = self.turn.prompt.files
        urls = [entry["url"] for entry in attachments if is_seen(str(entry.get("mediaType"))) and "url" in entry]
        missing = [url for url in urls if url not in known]
        if missing:
            most = turn_settings.request_media_bytes
            self.turn.prompt.add_files(await files_for_models(missing, self.facts.key.owner_id, max_bytes=most))

    async def _decided(self, row: ToolCallRecord, tool: Tool) -> ToolCallRecord:
        """The row once it has been decided. A wait that ended otherwise is followed by another one."""
        label = question_of(row.question).sentence or title_of(tool.name, tool.title)
        seconds = 0.0
        if row.expires_at is not None:
            seconds = (row.expires_at - row.created_at).total_seconds()
        for number in count(1):
            if row.status != CallStatus.ASKED:
                break
            key = wait_key(row.call_id, number)
            row = await db(self._wait_under, row, key)
            wait = Wait(key=key, kind=APPROVAL, label=label[:200], call_id=self.outer.call_id, seconds=seconds)
            await self.fiber.wait(wait)
            row = await db(self._after_wait, row)
        return row

    def _hand_out(self, call: ToolCall, pause: ToolPause) -> ToolCallRecord:
        with self.fiber.fenced():
            row = hand_out(self.facts, call, pause, wait_key=wait_key(call.call_id, 1))
            self.turn.guard.store(self.guard.spot, self.turn.guard.fresh_of(self.guard.spot))
        row.refresh_from_db()  # its times are the database's
        return row

    def _wait_under(self, row: ToolCallRecord, key: str) -> ToolCallRecord:
        """Have the decision answer this wait; nothing to write for the first one."""
        if row.wait_key != key:
            with self.fiber.fenced():
                ToolCallRecord.objects.filter(pk=row.pk, status=CallStatus.ASKED).update(wait_key=key)
            row.refresh_from_db()
        return row

    def _after_wait(self, row: ToolCallRecord) -> ToolCallRecord:
        """The row as it is now, or as expired where its time is over and nothing has noticed yet."""
        with self.fiber.fenced():
            expired = expired_call(row.pk)
            if expired is not None:
                abandon_call(expired, EXPIRED_TEXT, ApprovalEventKind.EXPIRED, Actor(user_id=None, via="server"))
                notify_conversation(row.owner_id, row.scope)
        row.refresh_from_db()
        return row

    def _begin(self, row_id: int) -> None:
        with self.fiber.fenced():
            begin_inner_call(row_id)

    def _close(self) -> None:
        with self.fiber.fenced():
            if close_inner_calls(self.facts.turn_id, NOT_ENDED, within=self.outer.call_id):
                notify_conversation(self.facts.key.owner_id, self.facts.key.instance_id)


def wait_key(call_id: str, number: int) -> str:
    """The key of a wait for the decision about a call; each question has more than one if need be."""
    return f"{APPROVAL}:{call_id}" if number == 1 else f"{APPROVAL}:{call_id}#{number}"


def _refused(media: Sequence[Media]) -> list[JSONObject]:
    """The entry for files beyond those that are kept: one, however many there are."""
    return [{"filename": item.name, "error": NOT_KEPT} for item in media[:1]]
