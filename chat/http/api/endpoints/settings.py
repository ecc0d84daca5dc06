"""API operations on a conversation's configuration, costs and budget."""

from dataclasses import asdict

from django.http import HttpRequest
from ninja import Router

from chat.access.auth import open_instance, open_session
from chat.agent.registry import get_agent_class
from chat.errors import ConfigPrivate
from chat.http.api.authentication import caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.common import ConfigIn, ConfigOut
from chat.http.api.schemas.spending import BudgetIn, BudgetOut, SpendingOut
from chat.instances.config import save_config, view_config
from chat.instances.rows import key_of
from chat.instances.spending import session_spending, spending
from chat.models import AgentInstance
from sessions_app.messages.usage import set_budget

router = Router(tags=["conversations"])


@router.get(
    "/instances/{instance_id}/config", response=ConfigOut, operation_id="get_config", openapi_extra=declares(403)
)
def config_detail(request: HttpRequest, instance_id: str) -> object:
    """The configuration of a conversation's agent, and the JSON Schema it fits. Only where its class allows it."""
    return view_config(_opened(request, instance_id, ("read", "write")))


@router.put(
    "/instances/{instance_id}/config", response=ConfigOut, operation_id="put_config", openapi_extra=declares(409)
)
def config_update(request: HttpRequest, instance_id: str, data: ConfigIn) -> object:
    """Replace the configuration; with `version` only if it has not changed since. Only where its class allows it."""
    instance = _opened(request, instance_id, ("write",))
    save_config(key_of(instance), data.config, version=data.version)
    instance.refresh_from_db()
    return view_config(instance)


@router.get("/instances/{instance_id}/usage", response=SpendingOut, operation_id="get_usage")
def usage_detail(request: HttpRequest, instance_id: str) -> object:
    """Tokens and cost of a conversation: its own, its sub-agents', and both. Active turns are not included."""
    return SpendingOut(**asdict(spending(open_instance(caller_of(request).user, instance_id))))


@router.get("/sessions/{session_id}/budget", response=BudgetOut, operation_id="get_budget")
def budget_detail(request: HttpRequest, session_id: str) -> object:
    """The cost of a session including sub-agents, and its limit."""
    return session_spending(open_session(caller_of(request).user, session_id), session_id)


@router.put("/sessions/{session_id}/budget", response=BudgetOut, operation_id="put_budget")
def budget_update(request: HttpRequest, session_id: str, data: BudgetIn) -> object:
    """Limit the cost of a session; null removes the limit. Beyond it, turns end with a reason before any model call."""
    instance = open_session(caller_of(request).user, session_id)
    set_budget(session_id, data.max_cost)
    return session_spending(instance, session_id)


def _opened(request: HttpRequest, instance_id: str, allowed: tuple[str, ...]) -> AgentInstance:
    instance = open_instance(caller_of(request).user, instance_id)
    if get_agent_class(instance.agent).config_access not in allowed:
        raise ConfigPrivate
    return instance
