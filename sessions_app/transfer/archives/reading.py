"""An archive as its conversations, whichever product it comes from: each is recognised by what it looks like."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from sessions_app.core.messages.messages import is_message_id
from sessions_app.transfer.archives.assembling import assemble, newest
from sessions_app.transfer.archives.chatgpt import attached_files, chatgpt_nodes, is_chatgpt
from sessions_app.transfer.archives.claude import claude_nodes, is_claude
from sessions_app.transfer.archives.container import Archive, ListFile
from sessions_app.transfer.archives.librechat import is_librechat, librechat_nodes
from sessions_app.transfer.archives.open_webui import chat_of, is_open_webui, open_webui_nodes
from sessions_app.transfer.archives.shapes import Conversation, LeftOut, Node, NodeKind, Product, UnreadableItem
from sessions_app.transfer.archives.splitting import Flaw
from sessions_app.transfer.archives.values import OTHER_PART, instant_of, object_of, text_of
from thinkproject.kernel.jsonvalue import JSONObject, fingerprint, load

MAX_TITLE: Final = 100
Found: TypeAlias = Conversation | UnreadableItem


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """The reader of one product's conversations, and the test that recognises them."""

    product: Product
    recognises: Callable[[JSONObject], bool]
    nodes: Callable[[JSONObject], Iterator[Node]]
    ids: tuple[str, ...]
    titles: tuple[str, ...]
    currents: tuple[str, ...]
    begun: tuple[str, ...]
    changed: tuple[str, ...]


READERS: Final = (
    Reader(
        product=Product.CHATGPT,
        recognises=is_chatgpt,
        nodes=chatgpt_nodes,
        ids=("conversation_id", "id"),
        titles=("title",),
        currents=("current_node",),
        begun=("create_time",),
        changed=("update_time",),
    ),
    Reader(
        product=Product.CLAUDE,
        recognises=is_claude,
        nodes=claude_nodes,
        ids=("uuid",),
        titles=("name",),
        currents=("current_leaf_message_uuid",),
        begun=("created_at",),
        changed=("updated_at",),
    ),
    Reader(
        product=Product.LIBRECHAT,
        recognises=is_librechat,
        nodes=librechat_nodes,
        ids=("conversationId",),
        titles=("title",),
        currents=("currentMessageId",),
        begun=("createdAt",),
        changed=("updatedAt", "exportAt"),
    ),
    Reader(
        product=Product.OPEN_WEBUI,
        recognises=is_open_webui,
        nodes=open_webui_nodes,
        ids=("id",),
        titles=("title",),
        currents=("currentId",),
        begun=("created_at", "timestamp"),
        changed=("updated_at",),
    ),
)


def read_archive(archive: Archive) -> Iterator[Found]:
    """Every conversation in the order of the archive, and in their places those that cannot be read.

    Files of a zip that hold no conversation (the account, feedback) are passed over.
    """
    for file in archive.lists():
        yield from _read_file(file)


def _read_file(file: ListFile) -> Iterator[Found]:
    """The conversations of a file; what is unreadable in it counts only where the file has conversations."""
    flaws: list[UnreadableItem] = []
    is_ours = file.is_expected
    for place, element in enumerate(file.elements(), 1):
        found = _found(element, f"{file.name}, {place}")
        if found is None:
            continue
        if isinstance(found, Conversation):
            is_ours = True
        else:
            flaws.append(found)
        if is_ours:
            yield from flaws
            flaws.clear()
            if isinstance(found, Conversation):
                yield found


def _found(element: bytes | Flaw, name: str) -> Found | None:
    if isinstance(element, Flaw):
        return UnreadableItem(name=name, reason=element.reason)
    try:
        value = load(element)
    except ValueError:
        return UnreadableItem(name=name, reason="Its JSON is damaged, or nested too deeply.")
    if not isinstance(value, dict):
        return UnreadableItem(name=name, reason="It is no conversation.")
    return read_conversation(value, name)


def read_conversation(value: JSONObject, name: str) -> Found:
    """One conversation, as a product writes it. `name`: its place, for people, where it has no title."""
    reader = next((each for each in READERS if each.recognises(value)), None)
    if reader is None:
        return UnreadableItem(name=name, reason="It is no conversation of a product that is known here.")
    head = value if reader.product is not Product.OPEN_WEBUI else {**chat_of(value), **_facts(value)}
    title = " ".join(_first(head, reader.titles).split())
    title = title if len(title) <= MAX_TITLE else f"{title[: MAX_TITLE - 1]}…"
    nodes = list(reader.nodes(value))
    if reader.product is Product.CHATGPT:
        _attach(nodes, value)
    history = object_of(head.get("history"))
    tree = assemble(nodes, _first(head, reader.currents) or text_of(history.get("currentId")))
    if not tree.messages:
        return UnreadableItem(name=title or name, reason="It has no messages.")
    begun = _instant(head, reader.begun)
    conversation = Conversation(
        product=reader.product,
        id=_id_of(head, reader.ids) or fingerprint(value),
        title=title,
        messages=tree.messages,
        leaf_id=tree.leaf_id,
        created_at=begun or min((node.created_at for node in nodes if node.created_at), default=None),
        updated_at=_instant(head, reader.changed) or newest(node.created_at for node in nodes),
        is_archived=head.get("archived") is True or head.get("is_archived") is True,
        is_pinned=head.get("pinned") is True or head.get("is_starred") is True,
        left_out=tree.left_out,
    )
    _count_unknown(conversation)
    return conversation


def _facts(value: JSONObject) -> JSONObject:
    """Facts of the record around a chat."""
    return {key: each for key, each in value.items() if key != "chat" and each is not None}


def _attach(nodes: list[Node], value: JSONObject) -> None:
    files = attached_files(value)
    for node in nodes:
        if node.id in files and node.kind in {NodeKind.NOTHING, NodeKind.PERSON, NodeKind.MODEL}:
            node.parts = [*files[node.id], *node.parts]
            node.kind = NodeKind.PERSON if node.kind is NodeKind.NOTHING else node.kind


def _count_unknown(conversation: Conversation) -> None:
    for message in conversation.messages:
        for part in message.parts:
            if isinstance(part, dict) and part["type"] == OTHER_PART:
                conversation.left_out[LeftOut.UNKNOWN] += 1


def _first(value: Mapping[str, object], names: tuple[str, ...]) -> str:
    return next((text for name in names if (text := text_of(value.get(name)))), "")


def _id_of(value: JSONObject, names: tuple[str, ...]) -> str:
    found = _first(value, names)
    return found if is_message_id(found) else ""


def _instant(value: JSONObject, names: tuple[str, ...]) -> datetime | None:
    return next((found for name in names if (found := instant_of(value.get(name))) is not None), None)
