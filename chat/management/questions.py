"""Questions of an agent in the terminal, and the lines in which a person answers; the services are those of all."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Final

from chat.agent.base import InstanceKey
from chat.agent.values.approvals import PendingExecution
from chat.errors import InputInvalid
from chat.management.terminal import Screen
from chat.models import Turn
from chat.runtime.approvals import InstanceApprovals
from chat.turns.admission.tool_answers import Reply
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import dump
from tools_app.core.permissions.rules import RuleLevel
from tools_app.core.questions import question_of
from tools_app.models import ToolCallRecord

ANSWERS: Final = frozenset({"/once", "/always", "/reject", "/reject-all", "/answer"})
WAYS: Final = "/once, {always}/reject [why] or /reject-all [why]"


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalQuestions:
    """The questions of one conversation and its sub-agents, oldest first: a line answers the first."""

    key: InstanceKey
    screen: Screen

    async def pending(self) -> list[PendingExecution]:
        """The questions that can be answered."""
        return await InstanceApprovals(self.key).pending()

    async def in_code(self, gone: Collection[str] = ()) -> bool:
        """Whether code waits in the middle of its run, so that its turn does not end. `gone`: ids that do not count."""
        return any(each.by_code and each.id not in gone for each in await self.pending())

    async def show(self) -> None:
        """Print the first question and how it is answered; nothing where there is none."""
        pending = await self.pending()
        if not pending:
            return
        first, more = pending[0], f" ({len(pending) - 1} more after this)" if len(pending) > 1 else ""
        question = question_of((await db(partial(ToolCallRecord.objects.get, approval_id=first.id))).question)
        for each in question.choices:
            labels = " | ".join(option["label"] for option in each.get("options") or ())
            self.screen.note(f"? {each['question']}{f' [{labels}]' if labels else ''}")
        if question.choices:
            self.screen.note(f"Answer with /answer first | second, or /reject [why]{more}.")
            return
        self.screen.note(f"? {first.title}: {first.sentence or dump(first.input)}")
        offered = ", ".join(f"{each.key} {each.pattern}" for each in question.offers)
        self.screen.note(f"Answer with {WAYS.format(always=f'/always (allows {offered}), ' if offered else '')}{more}.")

    async def reply(self, line: str) -> tuple[Turn | None, bool]:
        """Answer the first question: the turn that goes on, if one does, and whether it was parked meanwhile.

        Errors: `InputInvalid` where nothing is asked; those of `reply_to_call`.
        """
        pending = await self.pending()
        if not pending:
            raise InputInvalid("Nothing is asked here.")
        approvals = InstanceApprovals(self.key)
        replied, parked = await approvals.reply(pending[0], _reply(pending[0], line), via="terminal")
        if not replied.is_new:
            self.screen.note("It was answered elsewhere.")
        return parked if parked is not None else replied.turn, parked is not None


def _reply(asked: PendingExecution, line: str) -> Reply:
    word, _, rest = line.partition(" ")
    return Reply(
        call_id=asked.call_id,
        approval_id=asked.id,
        is_approved=not word.startswith("/reject"),
        reason=rest.strip() if word.startswith("/reject") else "",
        denies_all=word == "/reject-all",
        always=RuleLevel.CONVERSATION if word == "/always" else None,
        answers=[[text.strip()] for text in rest.split("|")] if word == "/answer" else None,
    )
