"""API operations on rules about calls: yours for all conversations, those of one, and plan mode."""

from dataclasses import asdict
from typing import Annotated

from django.http import HttpRequest
from ninja import Router
from pydantic import StringConstraints

from chat.access.auth import open_instance
from chat.conversations.permissions import (
    RuleDraft,
    RuleView,
    add_own_rule,
    change_own_rule,
    import_rules,
    own_rules,
    plans,
    remove_own_rule,
    rules_at,
    rules_for,
    set_plan_mode,
)
from chat.http.api.authentication import caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.rules import NewRuleIn, PlanIn, PlanOut, RuleIn, RuleOut, RulesFileIn, RulesFileOut, RulesOut
from chat.models import Role
from tools_app.calls.services import Actor
from tools_app.core.permissions.rules import RuleAction

router = Router(tags=["rules"])
InstanceId = Annotated[str, StringConstraints(max_length=64, pattern=r"^[^\x00]*$")]


@router.get("/rules", response=RulesOut, operation_id="list_rules", openapi_extra=declares(404))
def rule_list(request: HttpRequest, instance_id: InstanceId = "") -> RulesOut:
    """Your rules. With `instance_id` those that count in this conversation, the site's and the agent's included."""
    user = caller_of(request).user
    views = rules_for(open_instance(user, instance_id)) if instance_id else own_rules(user.pk)
    return RulesOut(items=[_encode(view, user.pk) for view in views])


@router.post("/rules", response={201: RuleOut}, operation_id="add_rule", openapi_extra=declares(404, 409))
def rule_add(request: HttpRequest, data: NewRuleIn) -> tuple[int, RuleOut]:
    """Add a rule for one conversation or for all of yours. It counts last among them, from the next call on.

    It allows nothing that the site or the agent denies, no high risk, and nothing that the injection guard asks about.
    """
    user = caller_of(request).user
    instance = open_instance(user, data.instance_id) if data.instance_id else None
    view = add_own_rule(user.pk, instance, _draft(data), Actor(user_id=user.pk, via="api"))
    return 201, _encode(view, user.pk)


@router.get("/rules/export", response=RulesFileOut, operation_id="export_rules", openapi_extra=declares(404))
def rules_export(request: HttpRequest, instance_id: InstanceId = "") -> RulesFileOut:
    """Your rules for all conversations, or with `instance_id` those for one, in the form that an import takes."""
    user = caller_of(request).user
    rules = rules_at(user.pk, open_instance(user, instance_id) if instance_id else None)
    return RulesFileOut(rules=[RuleIn(**asdict(each)) for each in rules])


@router.post("/rules/import", response=RulesOut, operation_id="import_rules", openapi_extra=declares(404, 409))
def rules_import(request: HttpRequest, data: RulesFileIn) -> RulesOut:
    """Add rules in their order, for one conversation or for all of yours. One that is no rule changes nothing."""
    user = caller_of(request).user
    instance = open_instance(user, data.instance_id) if data.instance_id else None
    drafts, actor = [_draft(each) for each in data.rules], Actor(user_id=user.pk, via="api")
    views = import_rules(user.pk, instance, drafts, actor, replaces=data.replaces)
    return RulesOut(items=[_encode(view, user.pk) for view in views])


@router.put("/rules/{rule_id}", response=RuleOut, operation_id="change_rule")
def rule_change(request: HttpRequest, rule_id: str, data: RuleIn) -> RuleOut:
    """Change a rule of yours; it keeps its place."""
    user = caller_of(request).user
    return _encode(change_own_rule(user.pk, rule_id, _draft(data)), user.pk)


@router.delete("/rules/{rule_id}", response={204: None}, operation_id="remove_rule")
def rule_remove(request: HttpRequest, rule_id: str) -> tuple[int, None]:
    """End a rule of yours. The next call is judged without it."""
    remove_own_rule(caller_of(request).user.pk, rule_id)
    return 204, None


@router.get("/instances/{instance_id}/plan-mode", response=PlanOut, operation_id="get_plan_mode")
def plan_detail(request: HttpRequest, instance_id: str) -> PlanOut:
    """Whether the conversation is in plan mode."""
    return PlanOut(is_on=plans(open_instance(caller_of(request).user, instance_id, needs=Role.READER)))


@router.put("/instances/{instance_id}/plan-mode", response=PlanOut, operation_id="set_plan_mode")
def plan_set(request: HttpRequest, instance_id: str, data: PlanIn) -> PlanOut:
    """Begin or end plan mode: calls that change anything are refused, and the model is reminded to plan."""
    user = caller_of(request).user
    instance = open_instance(user, instance_id)
    set_plan_mode(instance, is_on=data.is_on, actor=Actor(user_id=user.pk, via="api"))
    return PlanOut(is_on=plans(instance))


def _draft(data: RuleIn) -> RuleDraft:
    return RuleDraft(action=RuleAction(data.action), key=data.key, pattern=data.pattern, expires_at=data.expires_at)


def _encode(view: RuleView, user_id: int) -> RuleOut:
    row, rule = view.row, view.rule
    is_own = row is not None and row.owner_id == user_id
    return RuleOut(
        id=rule.rule_id,
        level=rule.level.value,  # type: ignore[arg-type]  # the built-in rules are in no list
        instance_id=row.scope if row is not None else "",
        title=view.title if row is not None and row.scope else "",
        action=rule.action.value,
        key=rule.key,
        pattern=rule.pattern,
        name=rule.name,
        may_change=is_own,
        created_by=row.created_by.get_username() if is_own and row is not None and row.created_by else "",
        created_at=None if row is None else row.created_at,
        expires_at=rule.expires_at,
    )
