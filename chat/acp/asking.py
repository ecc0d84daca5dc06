"""Questions about calls as requests for permission, and the answers as replies."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from acp.helpers import text_block, tool_content
from acp.schema import AllowedOutcome, PermissionOption, RequestPermissionResponse, ToolCallUpdate

from chat.acp.content import change_of, kind_of, locations_of, title_of_call
from chat.acp.updates import Updates
from chat.agent.base import InstanceKey
from chat.agent.values.approvals import PendingExecution
from chat.instances.notifications import group_of
from chat.instances.waiting import wait_until
from chat.runtime.approvals import InstanceApprovals
from chat.turns.admission.tool_answers import Reply
from thinkproject.kernel.aio import db
from tools_app.core.permissions.rules import RuleLevel
from tools_app.core.questions import Question, question_of
from tools_app.models import ToolCallRecord

ONCE: Final = "once"
ALWAYS: Final = "always"
REJECT: Final = "reject"


@dataclass(frozen=True, slots=True, kw_only=True)
class EditorQuestions:
    """The questions of one conversation and its sub-agents, each put to the client once."""

    key: InstanceKey
    updates: Updates

    async def pending(self) -> list[PendingExecution]:
        """The questions that can be answered, oldest first."""
        return await InstanceApprovals(self.key).pending()

    async def ask_all(self) -> None:
        """Ask what is asked, and what will be, one after the other. Ends where the client cancels a question."""
        while True:
            await wait_until(self._has_any, group=group_of(self.key))
            for asked in (await self.pending())[:1]:
                if not await self._settle(asked):
                    return

    async def _has_any(self) -> bool:
        return bool(await self.pending())

    async def _settle(self, asked: PendingExecution) -> bool:
        """Ask, and take the answer; false for none. Where another device answers first the request is left alone."""
        asking = asyncio.create_task(self._reply_to(asked))
        elsewhere = asyncio.create_task(wait_until(partial(self._is_over, asked.id), group=group_of(self.key)))
        try:
            await asyncio.wait({asking, elsewhere}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                return True
            reply = await asking
        finally:
            asking.cancel()
            elsewhere.cancel()
        if reply is None:
            return False
        await InstanceApprovals(self.key).reply(asked, reply, via="editor")
        return True

    async def _is_over(self, approval_id: str) -> bool:
        return approval_id not in {each.id for each in await self.pending()}

    async def _reply_to(self, asked: PendingExecution) -> Reply | None:
        row = await db(partial(ToolCallRecord.objects.get, approval_id=asked.id))
        question = question_of(row.question)
        if question.choices:
            return await self._choose(asked, question)
        chosen = await self._ask(asked, asked.sentence, _options(question))
        if chosen is None:
            return None
        return Reply(
            call_id=asked.call_id,
            approval_id=asked.id,
            is_approved=chosen != REJECT,
            always=RuleLevel.CONVERSATION if chosen == ALWAYS else None,
        )

    async def _choose(self, asked: PendingExecution, question: Question) -> Reply | None:
        """Put questions with choices one at a time; each choice is an option."""
        answers: list[list[str]] = []
        for each in question.choices:
            labels = [str(option["label"]) for option in each.get("options") or ()]
            options = [
                PermissionOption(option_id=f"choice-{at}", name=label, kind="allow_once")
                for at, label in enumerate(labels)
            ]
            chosen = await self._ask(asked, str(each["question"]), [*options, _NO])
            if chosen is None:
                return None
            if chosen == REJECT:
                return Reply(call_id=asked.call_id, approval_id=asked.id, is_approved=False)
            answers.append([labels[int(chosen.removeprefix("choice-"))]])
        return Reply(call_id=asked.call_id, approval_id=asked.id, is_approved=True, answers=answers)

    async def _ask(self, asked: PendingExecution, sentence: str, options: Sequence[PermissionOption]) -> str | None:
        """The id of the chosen option; `None` where the client gave none."""
        root = self.updates.root
        await self.updates.open(asked.call_id, asked.tool, asked.input)
        words = [tool_content(text_block(sentence))] if sentence else []
        call = ToolCallUpdate(
            tool_call_id=asked.call_id,
            title=title_of_call(asked.tool, asked.input),
            kind=kind_of(asked.tool),
            status="pending",
            content=[*words, *change_of(root, asked.tool, asked.input)] or None,
            locations=locations_of(root, asked.input),
            raw_input=asked.input,
        )
        response: RequestPermissionResponse = await self.updates.client.request_permission(
            self.key.name, call, list(options)
        )
        chosen = response.outcome.option_id if isinstance(response.outcome, AllowedOutcome) else None
        return chosen if chosen in {option.option_id for option in options} else None


_NO: Final = PermissionOption(option_id=REJECT, name="Reject", kind="reject_once")


def _options(question: Question) -> list[PermissionOption]:
    offered = ", ".join(f"{each.key} {each.pattern}" for each in question.offers)
    always = (
        [PermissionOption(option_id=ALWAYS, name=f"Always allow {offered}", kind="allow_always")] if offered else []
    )
    return [PermissionOption(option_id=ONCE, name="Allow once", kind="allow_once"), *always, _NO]
