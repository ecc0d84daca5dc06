"""API operation on the skills of an agent. Async, because the agent's own code says which there are."""

from django.http import HttpRequest
from ninja import Router

from chat.access.auth import open_instance
from chat.conversations import abilities
from chat.http.api.authentication import AsyncSessionAuth, AsyncTokenAuth, caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.abilities import SkillOut
from chat.instances.rows import key_of
from thinkproject.kernel.aio import db

router = Router(tags=["skills"], auth=[AsyncTokenAuth(), AsyncSessionAuth()])


@router.get(
    "/instances/{instance_id}/skills", response=list[SkillOut], operation_id="list_skills", openapi_extra=declares(500)
)
async def skill_list(request: HttpRequest, instance_id: str) -> object:
    """The skills that the agent of a conversation has, by name, then those that cannot be loaded."""
    return await abilities.skills_for(key_of(await db(open_instance, caller_of(request).user, instance_id)))
