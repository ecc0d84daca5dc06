"""API operation on the tree of a conversation's messages."""

from django.http import HttpRequest
from ninja import Router

from chat.access.auth import open_instance
from chat.http.api.authentication import caller_of
from chat.http.api.schemas.branches import BranchesOut, BranchNodeOut
from chat.models import Role
from chat.reads.branches import BranchView, branches_of
from thinkproject.kernel.filling import filled

router = Router(tags=["conversations"])


@router.get("/instances/{instance_id}/branches", response=BranchesOut, operation_id="list_branches")
def branch_list(request: HttpRequest, instance_id: str) -> BranchesOut:
    """The forks of the current history: at most 500 nodes. Messages in a row without a fork are one of them."""
    instance = open_instance(caller_of(request).user, instance_id, needs=Role.READER)
    views, is_cut = branches_of(instance.session_id)
    return BranchesOut(items=[_node(view) for view in views], is_cut=is_cut)


def _node(view: BranchView) -> BranchNodeOut:
    node = view.node
    return filled(BranchNodeOut, node, model=view.model)
