"""Rules about calls, as people see and change them: their own for all conversations, those of one, plan mode.

The API, the pages and the terminal call the same functions. Whether a person may use a conversation was decided by the
caller; the rules of the site and of agents are for those who look after it (`chat/admin/tools/rules.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from django.db import transaction

from chat.instances.notifications import notify_conversation
from chat.instances.rows import hold_instance, key_of
from chat.models import AgentInstance
from chat.turns.admission.rule_answers import place_of
from chat.turns.guarding.turn_rules import rules_of_instance
from thinkproject.kernel.owner_lock import lock_owner
from tools_app.calls.services import Actor
from tools_app.core.permissions.rules import CHANGES, Permission, RuleAction, RuleLevel
from tools_app.errors import RuleNotFound
from tools_app.models import PermissionRule
from tools_app.permissions.rows import PLANS, RulePlace, add_rules, change_rule, remove_rules

OWN_LEVELS = (RuleLevel.OWNER.value, RuleLevel.CONVERSATION.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleView:
    """A rule for people. `row`: nothing for one of a class's code. `title`: that of its conversation."""

    rule: Permission
    row: PermissionRule | None = None
    title: str = ""


def own_rules(owner_id: int) -> list[RuleView]:
    """A person's rules: those for all conversations, then those of single ones. Two queries."""
    rows = list(PermissionRule.objects.filter(owner_id=owner_id, level__in=OWN_LEVELS).select_related("created_by"))
    titles = dict(AgentInstance.objects.filter(pk__in={row.scope for row in rows}).values_list("pk", "title"))
    rows.sort(key=lambda row: row.level != RuleLevel.OWNER)
    return [RuleView(rule=row.permission, row=row, title=titles.get(row.scope, "")) for row in rows]


def rules_for(instance: AgentInstance) -> list[RuleView]:
    """The rules that count in a conversation, in the order in which they do: the last match decides. A few queries."""
    rules = rules_of_instance(instance, key_of(instance)).own
    stored = PermissionRule.objects.select_related("created_by").in_bulk([rule.rule_id for rule in rules])
    return [RuleView(rule=rule, row=stored.get(rule.rule_id), title=instance.title) for rule in rules]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDraft:
    """A rule as a person wants it."""

    action: RuleAction
    key: str
    pattern: str
    expires_at: datetime | None = None

    @property
    def permission(self) -> Permission:
        """The value, of no level yet."""
        return Permission(action=self.action, key=self.key, pattern=self.pattern)


@transaction.atomic
def add_own_rule(owner_id: int, instance: AgentInstance | None, draft: RuleDraft, actor: Actor) -> RuleView:
    """Add a rule of a person's, for one conversation or for all. Errors: `RuleInvalid`, `RulesFull`."""
    lock_owner(owner_id)
    [row] = add_rules(
        _place(owner_id, instance),
        [draft.permission],
        author_id=actor.user_id,
        via=actor.via,
        expires_at=draft.expires_at,
    )
    _notify(row)
    return _view(row)


def rules_at(owner_id: int, instance: AgentInstance | None) -> list[RuleDraft]:
    """A person's own rules of one place, in the order in which they count. One query."""
    return [
        RuleDraft(action=RuleAction(row.action), key=row.key, pattern=row.pattern, expires_at=row.expires_at)
        for row in _place(owner_id, instance).rows()
    ]


@transaction.atomic
def import_rules(
    owner_id: int, instance: AgentInstance | None, drafts: Sequence[RuleDraft], actor: Actor, *, replaces: bool
) -> list[RuleView]:
    """Add a person's rules in their order, all or none; `replaces` removes those of the place. Errors: as one's."""
    lock_owner(owner_id)
    place = _place(owner_id, instance)
    if replaces:
        remove_rules(list(place.rows().values_list("pk", flat=True)))
    rows: list[PermissionRule] = []
    for expires_at, alike in groupby(drafts, key=lambda draft: draft.expires_at):
        given = [draft.permission for draft in alike]
        rows += add_rules(place, given, author_id=actor.user_id, via=actor.via, expires_at=expires_at)
    if instance is not None:
        notify_conversation(owner_id, instance.pk)
    title = instance.title if instance is not None else ""
    return [RuleView(rule=row.permission, row=row, title=title) for row in rows]


@transaction.atomic
def change_own_rule(owner_id: int, rule_id: str, draft: RuleDraft) -> RuleView:
    """Change a rule of a person's; the next call is judged by it. Errors: `RuleNotFound`, `RuleInvalid`."""
    row = change_rule(_own(owner_id, rule_id), draft.permission, expires_at=draft.expires_at)
    _notify(row)
    return _view(row)


@transaction.atomic
def remove_own_rule(owner_id: int, rule_id: str) -> None:
    """End a rule of a person's; the next call is judged without it. Errors: `RuleNotFound`."""
    row = _own(owner_id, rule_id)
    remove_rules([row.pk])
    _notify(row)


def plans(instance: AgentInstance) -> bool:
    """Whether a conversation is in plan mode. One query."""
    return place_of(instance, RuleLevel.CONVERSATION).rows().filter(PLANS).exists()


@transaction.atomic
def set_plan_mode(instance: AgentInstance, *, is_on: bool, actor: Actor) -> None:
    """Begin or end plan mode in a conversation. Safe to repeat. Errors: `RulesFull`."""
    hold_instance(instance)
    if instance.owner_id is not None:
        lock_owner(instance.owner_id)
    place = place_of(instance, RuleLevel.CONVERSATION)
    remove_rules(list(place.rows().filter(PLANS).values_list("pk", flat=True)))
    if is_on:
        add_rules(place, [Permission.deny(CHANGES)], author_id=actor.user_id, via=actor.via)
    notify_conversation(instance.owner_id, instance.pk)


def _place(owner_id: int, instance: AgentInstance | None) -> RulePlace:
    if instance is not None:
        return place_of(instance, RuleLevel.CONVERSATION)
    return RulePlace(level=RuleLevel.OWNER, owner_id=owner_id)


def _own(owner_id: int, rule_id: str) -> PermissionRule:
    rows = PermissionRule.objects.select_for_update().filter(owner_id=owner_id, level__in=OWN_LEVELS)
    row = rows.filter(pk=rule_id).first()
    if row is None:
        raise RuleNotFound
    return row


def _view(row: PermissionRule) -> RuleView:
    titles = AgentInstance.objects.filter(pk=row.scope).values_list("title", flat=True)
    return RuleView(rule=row.permission, row=row, title=next(iter(titles), ""))


def _notify(row: PermissionRule) -> None:
    if row.scope:
        notify_conversation(row.owner_id, row.scope)
