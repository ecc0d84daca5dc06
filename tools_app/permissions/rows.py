"""Stored rules about calls. The only writers and readers of them; sync, each joins the transaction that is there.

Whether a person may make or end a rule was decided by the caller.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Q, QuerySet
from django.utils import timezone

from thinkproject.kernel.phrases import Phrase
from tools_app.core.permissions.rules import CHANGES, Permission, RuleAction, RuleLevel, checked
from tools_app.errors import RuleInvalid, RulesFull, ToolDeclarationInvalid
from tools_app.models.permissions import PermissionRule

HAS_RULES: Final = (
    "EXISTS (SELECT 1 FROM think_tools_permissionrule r WHERE r.owner_id = :owner: OR r.owner_id IS NULL)"
)
"""Whether any rule is stored that may concern a conversation, as part of another statement."""

PLANS: Final = Q(
    level=RuleLevel.CONVERSATION.value, key=CHANGES, pattern="*", action=RuleAction.DENY.value, expires_at=None
)
"""The rule that is a conversation's plan mode: all that changes anything is refused."""

MAX_OF_OWNER: Final = 500
"""Rules that one person may keep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePlace:
    """The place of a rule: a level with what it names. `owner_id`: of a person's and of a conversation's."""

    level: RuleLevel
    owner_id: int | None = None
    agent: str = ""
    scope: str = ""

    def rows(self) -> QuerySet[PermissionRule]:
        """The rules of this place in the order in which they count."""
        return PermissionRule.objects.filter(**self.fields()).order_by("position", "created_at", "pk")

    def fields(self) -> dict[str, Any]:
        """The columns."""
        return {"level": self.level.value, "owner_id": self.owner_id, "agent": self.agent, "scope": self.scope}


def stored_rules(owner_id: int | None, agents: Collection[str], scopes: Collection[str]) -> list[PermissionRule]:
    """The rules of the site, of these agents, of this person and of these conversations that have not expired.

    One query, in the order in which they count within a level.
    """
    wanted = Q(level=RuleLevel.SITE.value) | Q(level=RuleLevel.CLASS.value, agent__in=agents)
    wanted |= Q(level=RuleLevel.CONVERSATION.value, scope__in=scopes)
    if owner_id is not None:
        wanted |= Q(level=RuleLevel.OWNER.value, owner_id=owner_id)
    rows = PermissionRule.objects.filter(wanted).exclude(expires_at__lte=timezone.now())
    return list(rows.order_by("position", "created_at", "pk"))


def add_rules(
    place: RulePlace,
    rules: Iterable[Permission],
    *,
    author_id: int | None,
    via: str,
    expires_at: datetime | None = None,
) -> list[PermissionRule]:
    """Add rules at the end of their place, where they count last; one that counts there already is returned as it is.

    `via`: the entry point. In a transaction that holds the owner's row. Errors: `RuleInvalid`, `RulesFull`.
    """
    wanted = [_checked(rule) for rule in rules]
    known = list(place.rows())
    last: int = max((row.position for row in known), default=0)
    made: list[PermissionRule] = []
    for rule in wanted:
        found = _counting(known, rule, expires_at)
        if found is None:
            last += 1
            found = PermissionRule(
                **place.fields(),
                action=rule.action.value,
                key=rule.key,
                pattern=rule.pattern,
                position=last,
                created_by_id=author_id,
                via=via,
                expires_at=expires_at,
            )
            _check_room(place)
            found.save(force_insert=True)
            known.append(found)
        made.append(found)
    return made


def change_rule(row: PermissionRule, rule: Permission, *, expires_at: datetime | None) -> PermissionRule:
    """Give a rule another action, key, pattern and end; it keeps its position. Errors: `RuleInvalid`."""
    wanted = _checked(rule)
    row.action, row.key, row.pattern = wanted.action.value, wanted.key, wanted.pattern
    row.expires_at = expires_at
    row.save(update_fields=["action", "key", "pattern", "expires_at"])
    return row


def remove_rules(row_ids: Sequence[str]) -> int:
    """Remove rules. Returns how many there were."""
    return PermissionRule.objects.filter(pk__in=row_ids).delete()[0]


def forget_rules_of(scopes: Collection[str]) -> None:
    """Remove the rules of these conversations, which are deleted."""
    PermissionRule.objects.filter(scope__in=scopes).exclude(scope="").delete()


def copy_rules(source: str, target: RulePlace) -> None:
    """Give a conversation that goes on from another what is denied and asked there; allowances stay behind."""
    rows = PermissionRule.objects.filter(scope=source).exclude(action=RuleAction.ALLOW.value).order_by("position", "pk")
    PermissionRule.objects.bulk_create(
        PermissionRule(
            **target.fields(),
            action=row.action,
            key=row.key,
            pattern=row.pattern,
            position=row.position,
            created_by_id=row.created_by_id,
            via=row.via,
            expires_at=row.expires_at,
        )
        for row in rows
    )


def expired_rules() -> QuerySet[PermissionRule]:
    """Rules that do not count any more."""
    return PermissionRule.objects.filter(expires_at__lte=timezone.now())


def prune_rules(batch: int = 1_000) -> int:
    """Remove some of the expired rules. Returns how many."""
    return remove_rules(list(expired_rules().values_list("pk", flat=True)[:batch]))


def _checked(rule: Permission) -> Permission:
    try:
        return checked(rule)
    except ToolDeclarationInvalid as error:
        raise RuleInvalid(error.message) from error


def _counting(known: Sequence[PermissionRule], rule: Permission, expires_at: datetime | None) -> PermissionRule | None:
    """The last rule of a place where it says the same: adding it again would change nothing."""
    last = known[-1] if known else None
    same = last is not None and (last.action, last.key, last.pattern, last.expires_at) == (
        rule.action.value,
        rule.key,
        rule.pattern,
        expires_at,
    )
    return last if same else None


def _check_room(place: RulePlace) -> None:
    if place.owner_id is None:
        return
    mine = PermissionRule.objects.filter(owner_id=place.owner_id).order_by()
    if mine[MAX_OF_OWNER - 1 : MAX_OF_OWNER].exists():
        raise RulesFull(Phrase("You can keep {limit} rules. Remove some first.", limit=MAX_OF_OWNER))
