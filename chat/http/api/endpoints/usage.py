"""API operations on what a person has used, and what limits leave."""

from dataclasses import asdict
from datetime import UTC
from typing import Literal

from django.http import HttpRequest
from ninja import Router

from chat.http.api.authentication import caller_of
from chat.http.api.schemas.usage import LimitOut, OwnBudgetOut, UsageReportOut
from chat.reads import usage
from chat.reads.budgets import budgets_of_person
from chat.reads.limits import limits_of_person
from thinkproject.kernel.zones import current_zone, find_zone

router = Router(tags=["usage"])


@router.get("/usage", response=UsageReportOut, operation_id="get_own_usage")
def usage_report(request: HttpRequest, days: Literal["1", "7", "30"] = "7") -> object:
    """Usage of your conversations: today, or in the last 7 or 30 days with today, in your time zone."""
    zone = find_zone(current_zone()) or UTC
    report = usage.usage_of_person(caller_of(request).user.pk, int(days), zone)
    return UsageReportOut.model_validate(asdict(report))


@router.get("/usage/limits", response=list[LimitOut], operation_id="list_limits")
def limits_list(request: HttpRequest) -> object:
    """Your limits and their use now. Limits that are switched off are left out."""
    return [LimitOut(**asdict(view)) for view in limits_of_person(caller_of(request).user.pk)]


@router.get("/usage/budgets", response=list[OwnBudgetOut], operation_id="list_budgets")
def budgets_list(request: HttpRequest) -> object:
    """The budgets of your conversations and what each leaves, the fullest first; at most 100."""
    return [OwnBudgetOut(**asdict(view)) for view in budgets_of_person(caller_of(request).user.pk)]
