"""The rules about calls of a conversation: those of the classes, and those that the site and people have stored.

A conversation below another one has its own, and what those above deny or have people asked about; what a person
allowed above, or in all conversations, says nothing about it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from django.utils import timezone

from chat.agent.base import InstanceKey
from chat.agent.registry import get_agent_class, is_served
from chat.agent.think import Think
from chat.models import AgentInstance
from thinkproject.kernel.aio import db
from tools_app.calls.asking import facts_of
from tools_app.core.permissions.file_rules import FileRules
from tools_app.core.permissions.rules import (
    CHANGES,
    CallFacts,
    Permission,
    RuleAction,
    RuleLevel,
    RuleSet,
    RuleVerdict,
    inherited,
    offered,
)
from tools_app.core.questions import Offer, Question
from tools_app.core.tool import CallPermissions, Tool, ToolContext
from tools_app.core.tool_calls import ToolCall
from tools_app.models import PermissionRule
from tools_app.permissions.rows import stored_rules


class TurnRules(CallPermissions):
    """The rules for one attempt at a turn."""

    def __init__(self, instance: AgentInstance, key: InstanceKey, *, has_stored: bool, author: str = "") -> None:
        """No query. `has_stored`: a rule is stored that may concern the conversation. `author`: of the turn."""
        self._instance = instance
        self._author = author
        self._key = key
        self._has_stored = has_stored
        self._of_classes = rule_set(key, (), ())

    async def reminder(self) -> str:
        """The words for a model whose calls that change anything are refused; nothing for any other.

        A query, or two, where the conversation has stored rules.
        """
        rules = await self.current()
        return PLAN_TEXT if any(is_planning(each) for each in (rules.own, *rules.above)) else ""

    def may_decide(self, tool: Tool) -> bool:
        """Whether a rule may concern a call of this tool, as far as is known without a query."""
        return self._has_stored or tool.patterns is not None or bool(self._of_classes.own or self._of_classes.above)

    async def judge(self, call: CallFacts) -> RuleVerdict | None:
        """The decision of the rules as they are now. A query, or two, where the conversation has stored ones."""
        return (await self.current()).judge(call, timezone.now())

    async def current(self) -> RuleSet:
        """The rules. A query, or two, where the conversation had stored ones when the turn began."""
        return await self.rules() if self._has_stored else self._of_classes

    async def for_files(self, *, is_approved: bool) -> FileRules:
        """The rules for files that code reaches. Queries: as `judge`."""
        return FileRules(rules=await self.current(), now=timezone.now(), is_approved=is_approved)

    async def offering(self, question: Question, tool: Tool, call: ToolCall, context: ToolContext) -> Question:
        """The question with the rule that asks it, and the allowances that would answer it and its like for always."""
        facts = await facts_of(tool, call, context)
        rules, now = await self.current(), timezone.now()
        verdict = rules.judge(facts, now)
        question = replace(question, rule=verdict.rule.name if verdict is not None else "")
        if question.because or tool.asks_person:
            return question
        is_below = bool(self._key.ancestors)
        offers = tuple(
            Offer(key=rule.key, pattern=rule.pattern, here_only=is_below) for rule in offered(facts, rules, now)
        )
        return replace(question, facts=facts, offers=offers)

    async def rules(self) -> RuleSet:
        """The rules as they are stored now. A query, or two."""
        return await db(rules_of_instance, self._instance, self._key, self._author)


PLAN_TEXT: Final = (
    "You are in plan mode: look and think, and change nothing. Calls that change anything are refused. Find out what "
    "you need, ask where the wish is not clear, and then say what you would do, step by step. The person decides when "
    "plan mode ends; until then do not begin."
)
"""For the model, after the history; never stored."""


def is_planning(rules: Sequence[Permission]) -> bool:
    """Whether the last rule about all that changes anything is that the conversation's own refuses it."""
    of_all = [rule for rule in rules if (rule.key, rule.pattern) == (CHANGES, "*")]
    return bool(of_all) and of_all[-1].action is RuleAction.DENY


def rules_of_instance(instance: AgentInstance, key: InstanceKey, author: str = "") -> RuleSet:
    """The rules for the calls of a conversation, as they are stored now. One query, and one for each above it.

    `author`: the member who asks; the owner's allowances for all of the owner's conversations are not a member's.
    """
    above = _ids_above(instance)
    agents = {key.agent, *(each.agent for each in key.ancestors)}
    stored = stored_rules(key.owner_id, agents, [instance.pk, *above])
    return rule_set(key, above, stored, instance.pk, author)


def rule_set(
    key: InstanceKey, above: Sequence[str], rows: Sequence[PermissionRule], scope: str = "", author: str = ""
) -> RuleSet:
    """The rules of classes and these stored ones. `above`: the ids of the conversations above, root first."""
    own = [row.permission for row in rows if row.level == RuleLevel.SITE]
    own += _of_class(key.agent, rows)
    mine = [row.permission for row in rows if row.level == RuleLevel.OWNER]
    own += mine if not key.ancestors and not author else [rule for rule in mine if rule.action is not RuleAction.ALLOW]
    own += [row.permission for row in rows if row.scope and row.scope == scope]
    sets = []
    for at, parent in enumerate(key.ancestors):
        there = above[at] if at < len(above) else ""
        rules = [*_of_class(parent.agent, rows), *(row.permission for row in rows if there and row.scope == there)]
        sets.append(inherited(rules))
    return RuleSet(own=tuple(own), above=tuple(rules for rules in sets if rules))


def _of_class(agent: str, rows: Sequence[PermissionRule]) -> list[Permission]:
    cls = get_agent_class(agent) if is_served(agent) else None
    declared = cls.permissions if cls is not None and issubclass(cls, Think) else ()
    stored = [row.permission for row in rows if row.level == RuleLevel.CLASS and row.agent == agent]
    return [*(replace(rule, level=RuleLevel.CLASS) for rule in declared), *stored]


def _ids_above(instance: AgentInstance) -> list[str]:
    """The ids of the conversations above, root first. A query for each."""
    found: list[str] = []
    parent_id = instance.parent_id
    while parent_id is not None:
        found.insert(0, parent_id)
        parent_id = AgentInstance.objects.values_list("parent_id", flat=True).get(pk=parent_id)
    return found
