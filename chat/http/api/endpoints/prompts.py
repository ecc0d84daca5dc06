"""API operations on the caller's saved prompts."""

from django.http import HttpRequest
from ninja import Router, Status

from chat.http.api.authentication import caller_of
from chat.http.api.schemas.prompts import PromptIn, PromptOut, PromptPatch
from chat.models import SavedPrompt
from chat.people.prompts import add_prompt, change_prompt, prompts_of, remove_prompt

router = Router(tags=["you"])


@router.get("/prompts", response=list[PromptOut], operation_id="list_prompts")
def prompt_list(request: HttpRequest) -> list[PromptOut]:
    """Your saved prompts, by their names."""
    return [_prompt(row) for row in prompts_of(caller_of(request).user.pk)]


@router.post("/prompts", response={201: PromptOut}, operation_id="add_prompt")
def prompt_add(request: HttpRequest, data: PromptIn) -> object:
    """Save a prompt. 422 for a name that you have already, whatever its case."""
    return Status(201, _prompt(add_prompt(caller_of(request).user.pk, name=data.name, text=data.text)))


@router.patch("/prompts/{prompt_id}", response=PromptOut, operation_id="change_prompt")
def prompt_change(request: HttpRequest, prompt_id: str, data: PromptPatch) -> PromptOut:
    """Change the name or the text of a prompt."""
    changes = {name: value for name, value in data.dict(exclude_unset=True).items() if value is not None}
    return _prompt(change_prompt(caller_of(request).user.pk, prompt_id, **changes))


@router.delete("/prompts/{prompt_id}", response={204: None}, operation_id="remove_prompt")
def prompt_remove(request: HttpRequest, prompt_id: str) -> object:
    """Remove a prompt."""
    remove_prompt(caller_of(request).user.pk, prompt_id)
    return Status(204, None)


def _prompt(row: SavedPrompt) -> PromptOut:
    return PromptOut(id=row.pk, name=row.name, text=row.text, updated_at=row.updated_at)
