"""API operations on agents, conversations and their transcripts: parse, open, call, encode."""

import logging
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from asgiref.sync import async_to_sync
from django.http import HttpRequest
from django.templatetags.static import static
from ninja import Query, Router, Schema, Status
from pydantic import StringConstraints

from chat.access.auth import open_agent, open_instance, open_session
from chat.agent.appearance import DEFAULT_ICON, Appearance, is_symbol
from chat.agent.registry import list_agents
from chat.conversations.changes import (
    archive_instance,
    create_instance,
    mark_seen,
    move_instance,
    new_instance_name,
    pin_instance,
    rename_instance,
    show_message,
)
from chat.conversations.list import InstanceFilter, instance_page, instance_summary
from chat.core.model.chosen_model import NOTHING
from chat.errors import InputInvalid, InstanceNotFound
from chat.http.api.authentication import caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.common import (
    ActivityOut,
    AddedMessageIn,
    AnswerOut,
    InstanceIn,
    InstancePageOut,
    InstancePatch,
    InstancesQuery,
    LeafIn,
    LeafOut,
    MessageOut,
    MessagesIn,
    MessagesOut,
    RunningTurnOut,
    TranscriptOut,
    TurnOut,
)
from chat.http.api.schemas.models import (
    AgentOut,
    CommandOut,
    InstanceDetailOut,
    ModelOut,
    OfferedModelOut,
    OfferedModelsOut,
    PricesOut,
)
from chat.http.api.schemas.sessions import DeletedOut, EditedAnswerIn, EditedAnswerOut
from chat.instance.instance import Instance
from chat.instances.model_choice import store_choice
from chat.instances.rows import key_of
from chat.llm.registry import describe_default
from chat.members.selectors import role_of
from chat.models import AgentInstance, Role
from chat.operations.deleted import deleted_of, find_deleted, put_into_deleted, restore_instances
from chat.operations.removal import delete_instance
from chat.operations.temporary import keep_instance
from chat.reads import transcripts
from chat.reads.activity import Activity
from chat.runtime.add_messages import AppendAuthor, add_messages, edit_answer
from chat.runtime.model_choice import OfferedModel
from chat.turns.admission.stop import clear_instance
from sessions_app.core.messages.messages import parse_message
from sessions_app.core.messages.shapes import Message
from sessions_app.core.messages.tree import Leaf
from thinkproject.kernel.ids import new_id

logger = logging.getLogger(__name__)

router = Router()
Limit = Annotated[int, Query(ge=1, le=200)]
Text = Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00]*$")]


class TranscriptPage(Schema):
    """Selects a page of a path: at most one field; the newest page without any."""

    before: Text | None = None
    around: Text | None = None
    after: Text | None = None

    def parsed(self) -> transcripts.PageOf:
        """As the selector takes it. Errors: `InputInvalid` for more than one."""
        return transcripts.PageOf(before=self.before, around=self.around, after=self.after)


@router.get("/agents", response=list[AgentOut], operation_id="list_agents", tags=["agents"])
def agents(request: HttpRequest, unlisted: bool = False) -> object:  # noqa: ARG001 - the framework names it
    """Agents to begin a conversation with, and how they look; with `unlisted` also those that work for other agents."""
    return [shown_agent(shown) for shown in list_agents() if shown.is_listed or unlisted]


@router.get(
    "/models", response=OfferedModelsOut, operation_id="list_models", openapi_extra=declares(404), tags=["agents"]
)
def models(request: HttpRequest, agent: Text) -> object:
    """The models that can be chosen for conversations with an agent. None: nothing can be chosen."""
    key = open_agent(caller_of(request).user, agent, new_instance_name()).key
    return OfferedModelsOut(items=[_offered(model) for model in async_to_sync(Instance(key).model_choice.offered)()])


@router.get("/model", response=ModelOut, operation_id="get_model", tags=["agents"])
def model(request: HttpRequest) -> object:  # noqa: ARG001 - the framework names it
    """The default model, whether it is the small one, and how to connect a better one."""
    return describe_default()


@router.get(
    "/instances",
    response=InstancePageOut,
    operation_id="list_instances",
    openapi_extra=declares(404),
    tags=["conversations"],
)
def instance_list(
    request: HttpRequest, wanted: Annotated[InstancesQuery, Query()], cursor: Text = "", limit: Limit = 50
) -> object:
    """Your conversations, newest activity first; with `parent` the sub-agents of that one instead.

    Archived ones are listed with `archived=true` alone; `pinned` narrows to those that are pinned, or are not,
    `project` to those in one of your projects (its id), in `any`, or in `none`.
    """
    chosen = InstanceFilter(
        agent=wanted.agent,
        search=wanted.search,
        parent_id=_opened(request, wanted.parent, Role.READER).id if wanted.parent else None,
        is_archived=wanted.archived,
        is_pinned=wanted.pinned,
        project=wanted.project,
    )
    return instance_page(caller_of(request).user.pk, chosen, cursor=cursor, limit=limit)


@router.post(
    "/instances",
    response={201: InstanceDetailOut},
    operation_id="create_instance",
    openapi_extra=declares(404, 429),
    tags=["conversations"],
)
def instance_create(request: HttpRequest, data: InstanceIn) -> object:
    """Start a conversation, or open the existing one with this name."""
    opened = open_agent(caller_of(request).user, data.agent, data.name or new_instance_name())
    choice = NOTHING
    if data.model_choice is not None and opened.instance is None and not opened.is_read_only:
        choice = async_to_sync(Instance(opened.key).model_choice.check)(data.model_choice.dict())
    instance = create_instance(
        opened,
        title=data.title,
        title_is_provisional=data.title_is_provisional,
        model_choice=choice,
        is_temporary=data.temporary,
        project_id=data.project_id,
    )
    return Status(201, shown_instance(instance, instance.owner_id))


@router.get("/instances/{instance_id}", response=InstanceDetailOut, operation_id="get_instance", tags=["conversations"])
def instance_detail(request: HttpRequest, instance_id: str) -> object:
    """One conversation, and the model that answers next."""
    return shown_instance(_opened(request, instance_id, Role.READER), caller_of(request).user.pk)


@router.patch(
    "/instances/{instance_id}", response=InstanceDetailOut, operation_id="update_instance", tags=["conversations"]
)
def instance_update(request: HttpRequest, instance_id: str, data: InstancePatch) -> object:
    """Rename a conversation, choose its model or project, pin it, put it away, restore or keep it, or note you saw it.

    A choice of a model takes effect with the next turn. One that is refused changes nothing.
    """
    instance = _opened(request, instance_id)
    choice = None
    if "model_choice" in data.model_fields_set:
        chosen = None if data.model_choice is None else data.model_choice.dict()
        choice = async_to_sync(Instance(key_of(instance)).model_choice.check)(chosen)
    if "project_id" in data.model_fields_set:
        move_instance(instance, data.project_id)
    if choice is not None:
        store_choice(key_of(instance), choice)
    if data.title is not None:
        rename_instance(instance, data.title)
    if data.pinned is not None:
        pin_instance(instance, is_pinned=data.pinned)
    if data.archived is not None:
        archive_instance(instance, is_archived=data.archived)
    if data.temporary is False:
        keep_instance(instance)
    if data.seen:
        mark_seen(instance)
    return shown_instance(instance, instance.owner_id)


@router.delete("/instances/{instance_id}", response={204: None}, operation_id="delete_instance", tags=["conversations"])
def instance_delete(request: HttpRequest, instance_id: str, forever: bool = False) -> object:
    """Delete a conversation. It can be restored for 30 days; with `forever` it is removed at once, with all in it.

    Either way nothing finds it any more, what runs in it is stopped, and its name is free. A sub-agent is removed at
    once, and so is a temporary conversation. With `forever` also one that was deleted before.
    """
    owner_id = caller_of(request).user.pk
    try:
        instance = _opened(request, instance_id)
    except InstanceNotFound:
        if not forever:
            raise
        delete_instance(find_deleted(owner_id, instance_id))
        return Status(204, None)
    if forever or instance.parent_id is not None:
        delete_instance(instance)
    else:
        put_into_deleted([instance])
    return Status(204, None)


@router.get("/deleted", response=list[DeletedOut], operation_id="list_deleted", tags=["conversations"])
def deleted_list(request: HttpRequest, before: datetime | None = None, limit: Limit = 100) -> object:
    """Your deleted conversations that can be restored, the last deleted first; `before`: deleted earlier than this."""
    found = deleted_of(caller_of(request).user.pk, before=before, limit=limit)
    return [DeletedOut(**asdict(each)) for each in found]


@router.post(
    "/instances/{instance_id}/restore",
    response=InstanceDetailOut,
    operation_id="restore_instance",
    tags=["conversations"],
)
def instance_restore(request: HttpRequest, instance_id: str) -> object:
    """Bring a deleted conversation back; one that is there stays as it is. It gets another name where its own is taken.

    Schedules that the deletion paused run again. Answers and background work that it stopped wait to be asked for:
    `failed` of `list_messages` has the code `conversation_deleted`, `can_restart` of work is true. Links have ended.
    """
    restore_instances(caller_of(request).user.pk, [instance_id])
    instance = _opened(request, instance_id)
    return shown_instance(instance, instance.owner_id)


@router.get(
    "/instances/{instance_id}/messages",
    response=TranscriptOut,
    operation_id="list_messages",
    tags=["conversations"],
)
def message_list(
    request: HttpRequest, instance_id: str, page: Annotated[TranscriptPage, Query()], limit: Limit = 50
) -> TranscriptOut:
    """A page of the path that is shown, root first; before a message for older ones, around one to open it there.

    The answer of the running turn is not in it yet: follow its stream from the beginning.
    """
    return _encode(
        transcripts.transcript(lambda: _opened(request, instance_id, Role.READER), page.parsed(), limit=limit)
    )


@router.post(
    "/instances/{instance_id}/messages",
    response={201: MessagesOut},
    operation_id="add_messages",
    openapi_extra=declares(409, 429),
    tags=["conversations"],
)
def message_add(request: HttpRequest, instance_id: str, data: MessagesIn) -> object:
    """Store messages without asking for an answer. Those whose ids are there already stay as they are."""
    parent = data.parent_id if "parent_id" in data.model_fields_set else Leaf.ACTIVE
    messages = [_added(message) for message in data.messages]
    return Status(201, MessagesOut(ids=add_messages(key_of(_opened(request, instance_id)), messages, parent=parent)))


@router.post(
    "/instances/{instance_id}/messages/{message_id}/edit",
    response={201: EditedAnswerOut},
    operation_id="edit_answer",
    openapi_extra=declares(409, 429),
    tags=["conversations"],
)
def answer_edit(request: HttpRequest, instance_id: str, message_id: str, data: EditedAnswerIn) -> object:
    """Put another text beside an answer, and go on from it if wanted. Both stay; nothing after the old one is lost."""
    key = key_of(_opened(request, instance_id))
    message = _added(AddedMessageIn(role="assistant", parts=data.parts))
    author = AppendAuthor(user_id=caller_of(request).user.pk, via="api", action="edit", replaces=message_id)
    new_id, leaf_id = edit_answer(key, message_id, message, shows=data.continue_from_here, by=author)
    return Status(201, EditedAnswerOut(message_id=new_id, leaf_id=leaf_id))


@router.put("/instances/{instance_id}/leaf", response=LeafOut, operation_id="select_leaf", tags=["conversations"])
def leaf_select(request: HttpRequest, instance_id: str, data: LeafIn) -> LeafOut:
    """Select another sibling: the newest path below that message becomes active."""
    return LeafOut(leaf_id=show_message(_opened(request, instance_id, Role.WRITER), data.message_id))


@router.post(
    "/instances/{instance_id}/clear", response={204: None}, operation_id="clear_instance", tags=["conversations"]
)
def instance_clear(request: HttpRequest, instance_id: str) -> object:
    """Forget the messages of a conversation and keep the conversation. A running turn is cancelled."""
    clear_instance(key_of(_opened(request, instance_id)))
    return Status(204, None)


@router.get(
    "/sessions/{session_id}/messages",
    response=TranscriptOut,
    operation_id="list_session_messages",
    tags=["conversations"],
)
def session_messages(
    request: HttpRequest, session_id: str, page: Annotated[TranscriptPage, Query()], limit: Limit = 50
) -> TranscriptOut:
    """A page of one history, as of the current one."""

    def find() -> AgentInstance:
        instance = open_session(caller_of(request).user, session_id, needs=Role.READER)
        instance.session_id = session_id
        return instance

    return _encode(transcripts.transcript(find, page.parsed(), limit=limit))


def _opened(request: HttpRequest, instance_id: str, needs: Role = Role.OWNER) -> AgentInstance:
    return open_instance(caller_of(request).user, instance_id, needs=needs)


def shown_instance(instance: AgentInstance, user_id: Any) -> InstanceDetailOut:
    """A conversation as the API shows it to a user, with the model that answers next."""
    summary = instance_summary(instance.id, role=role_of(user_id, instance) or Role.READER)
    view = async_to_sync(Instance(key_of(instance)).model_choice.view)(summary.model_choice)
    return InstanceDetailOut(**asdict(summary), model=view.model, model_notice=view.notice)


def shown_agent(shown: Appearance) -> AgentOut:
    """An agent class as the API shows it."""
    is_file = not is_symbol(shown.icon)
    return AgentOut(
        name=shown.name,
        title=shown.title,
        description=shown.description,
        icon=DEFAULT_ICON if is_file else shown.icon,
        icon_url=_static_url(shown.icon) if is_file else None,
        suggestions=list(shown.suggestions),
        is_listed=shown.is_listed,
        delivery=shown.delivery,
        commands=[
            CommandOut(name=each.name, description=each.description, takes_text=each.takes_text)
            for each in shown.commands
        ],
        has_shell=shown.has_shell,
        thread_agent=shown.thread_agent or None,
    )


def _static_url(path: str) -> str | None:
    try:
        return static(path)
    except ValueError:  # a site that collects its static files has not this one: the page shows a symbol
        logger.exception("an agent's icon is missing", extra={"action": "icon_missing", "path": path})
        return None


def _offered(model: OfferedModel) -> OfferedModelOut:
    known = model.known
    price = known.price
    return OfferedModelOut(
        name=known.name,
        title=known.title,
        provider=known.provider,
        context_tokens=known.limits.context_tokens or None,
        max_output_tokens=known.limits.output_tokens or None,
        prices=None
        if price is None
        else PricesOut(input=price.input, output=price.output, cached_input=price.cache_read),
        reasoning_efforts=list(known.reasoning_efforts),
        parameters=list(known.parameters),
        inputs=None if known.inputs is None else list(known.inputs),
        calls_tools=known.calls_tools,
        reasons=known.reasons,
        is_default=model.is_default,
    )


def _added(data: AddedMessageIn) -> Message:
    message = parse_message({"id": new_id("msg"), **data.dict(exclude_none=True)})
    if data.role == "assistant" and any(part["type"] != "text" for part in message["parts"]):
        raise InputInvalid("Only the texts of an assistant's message can be added.")  # no calls that never were
    return message


def _encode(view: transcripts.TranscriptView) -> TranscriptOut:
    return TranscriptOut.model_construct(
        session_id=view.session_id,
        version=view.version,
        items=[_message(item) for item in view.messages],
        queued=[_message(item) for item in view.queued],
        has_more=view.has_more,
        has_newer=view.has_newer,
        leaf_id=view.leaf_id,
        shown_leaf_id=view.shown_leaf_id,
        running=_running(view.running, view.activity) if view.running else None,
        failed=TurnOut(**asdict(view.failed)) if view.failed else None,
        compacting=view.compacting,
    )


def _running(view: transcripts.TurnView, activity: Activity | None) -> RunningTurnOut:
    shown = ActivityOut(**asdict(activity)) if activity else None
    return RunningTurnOut(**asdict(view), turn_id=view.id, activity=shown)


def _message(view: transcripts.MessageView) -> MessageOut:
    message = view.message
    return MessageOut.model_construct(
        id=message.id,
        role=message.role,
        parts=list(message.parts),
        metadata=message.to_ui().get("metadata"),  # with its author
        parent_id=message.parent_id,
        sibling_ids=view.sibling_ids,
        position=view.position,
        created_at=message.created_at,
        queued=not message.placed,
        version=message.change_seq,
        turn=TurnOut(**asdict(view.turn)) if view.turn else None,
        answer=AnswerOut(**asdict(view.answer)) if view.answer else None,
        tool_ms=view.tool_ms,
    )
