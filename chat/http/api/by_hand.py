"""Whether a request comes from a person in a browser, who works on what is theirs alone."""

from django.http import HttpRequest

from chat.http.api.authentication import caller_of
from chat.members.selectors import people_in
from chat.models import AgentInstance
from thinkproject.kernel.aio import db
from tools_app.core.files.workspace import Workspace
from tools_app.core.origins import Origin


def is_in_browser(request: HttpRequest) -> bool:
    """Whether a person has signed in with it, in a browser; a program has a token."""
    return caller_of(request).credential.kind == "session"


async def is_by_hand(request: HttpRequest, instance_id: str) -> bool:
    """Whether the owner of a conversation asks, in a browser, and no other person is in it. Three queries at most."""
    if not is_in_browser(request):
        return False
    user = caller_of(request).user

    def is_alone() -> bool:
        instance = AgentInstance.objects.filter(pk=instance_id, owner_id=user.pk).first()
        return instance is not None and len(people_in(instance)) == 1

    return await db(is_alone)


async def origin_of_edit(request: HttpRequest, instance_id: str, workspace: Workspace, path: str) -> Origin | None:
    """The origin of a text that is changed in a browser: what it was before, and a stranger's from anywhere else."""
    if not await is_by_hand(request, instance_id):
        return Origin.FILE
    entry = await workspace.stat(path)
    return None if entry is None else entry.origin
