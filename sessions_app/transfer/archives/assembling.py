"""Nodes as a product has them become the messages of a session: every branch, each where it was.

One answer of a model may be several nodes in a row (a thought, a call, its result, a text): they become one message,
up to where the tree branches. A call whose results lie in several branches goes into each of them. What is hidden is
carried as a data part into the messages that follow it. Walks without recursion: chains are thousands of nodes long.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, cast

from sessions_app.core.messages.messages import MessageRole
from sessions_app.core.messages.parts import is_pending
from sessions_app.core.messages.shapes import Part
from sessions_app.transfer.archives.shapes import (
    ArchivedMessage,
    Content,
    FileRef,
    LeftOut,
    Node,
    NodeKind,
)
from sessions_app.transfer.archives.values import call_part, fitting_id, settle
from thinkproject.kernel.jsonvalue import byte_size

MAX_JOINED_PARTS: Final = 500
MAX_JOINED_BYTES: Final = 1024 * 1024


@dataclass(slots=True, kw_only=True)
class ArchiveTree:
    """The messages of a conversation and the one that its path ends with; empty without any message."""

    messages: list[ArchivedMessage]
    leaf_id: str
    left_out: Counter[str]


def assemble(nodes: Iterable[Node], current_id: str = "") -> ArchiveTree:
    """Make the messages. `current_id`: the node that was chosen, if the product says it; else the newest path."""
    walk = _Walk(_named_once(nodes))
    walk.run()
    return ArchiveTree(messages=walk.messages, leaf_id=walk.leaf(current_id), left_out=walk.left_out)


def _named_once(nodes: Iterable[Node]) -> dict[str, Node]:
    """The nodes by their ids; one whose id is taken gets another, and loses nothing."""
    found: dict[str, Node] = {}
    for node in nodes:
        name, count = node.id, 1
        while name in found:
            count += 1
            name = f"{node.id}~{count}"
        node.id = name
        found[name] = node
    return found


@dataclass(slots=True, kw_only=True)
class _Open:
    """A message that more nodes may join."""

    message: ArchivedMessage
    byte_count: int = 0

    @property
    def calls(self) -> list[Part]:
        return [part for part in self.message.parts if not isinstance(part, FileRef) and is_pending(part)]

    def has_room(self, node: Node) -> bool:
        return len(self.message.parts) + len(node.parts) <= MAX_JOINED_PARTS and self.byte_count <= MAX_JOINED_BYTES


@dataclass(slots=True, kw_only=True)
class _Step:
    """A node that is to be visited, and what the ones above it left."""

    node_id: str
    parent_id: str | None  # of the message that it hangs below
    open: _Open | None = None
    carried: list[Content] = field(default_factory=list)  # hidden parts, calls without their results


class _Walk:
    """One pass over a tree, from its roots down."""

    def __init__(self, nodes: dict[str, Node]) -> None:
        self.nodes = nodes
        self.messages: list[ArchivedMessage] = []
        self.left_out: Counter[str] = Counter()
        self._places: dict[str, str | None] = {}  # of each node, the message that shows it
        self._unmade: dict[str, str | None] = {}  # messages that turned out to be empty, and what stands above them
        self._by_id: dict[str, ArchivedMessage] = {}
        self._below = _children(nodes)

    def run(self) -> None:
        """Visit every node once, those of a circle or of a lost parent too."""
        roots = [node.id for node in self.nodes.values() if node.parent_id is None]
        self._visit_from(roots)
        for node_id, node in self.nodes.items():
            if node_id not in self._places and node.parent_id not in self.nodes:
                self.left_out[LeftOut.LINK] += 1
                self._visit_from([node_id])
        for node_id in self.nodes:
            if node_id not in self._places:  # a circle: it is cut open here
                self.left_out[LeftOut.LINK] += 1
                self._visit_from([node_id])

    def leaf(self, current_id: str) -> str:
        """The message that shows a node, or the end of the newest path."""
        if current_id in self._places:
            found = self._made(self._places[current_id])
            if found is not None:
                return found
        return self.messages[-1].id if self.messages else ""

    def _visit_from(self, roots: Sequence[str]) -> None:
        waiting = [_Step(node_id=root, parent_id=None) for root in reversed(roots)]
        while waiting:
            step = waiting.pop()
            waiting += reversed(self._visit(step))

    def _visit(self, step: _Step) -> list[_Step]:
        node = self.nodes[step.node_id]
        match node.kind:
            case NodeKind.NOTHING | NodeKind.HIDDEN:
                self.left_out[LeftOut.EMPTY if node.kind is NodeKind.NOTHING else LeftOut.HIDDEN] += 1
                self._places[node.id] = step.parent_id if step.open is None else step.open.message.id
                opened, carried = step.open, [*step.carried, *node.parts]
            case _:
                opened, carried = self._take(step, node), []
        children = [child for child in self._below.get(node.id, ()) if child not in self._places]  # no circles
        if opened is None:
            return self._pass_on(step.parent_id, carried, children)
        if len(children) == 1 and opened.message.role == MessageRole.ASSISTANT:
            return [_Step(node_id=children[0], parent_id=opened.message.parent_id, open=opened, carried=carried)]
        carried += self._calls_for(opened, children)
        self._close(opened)
        return self._pass_on(self._made(opened.message.id), carried, children)

    def _pass_on(self, parent_id: str | None, carried: list[Content], children: Sequence[str]) -> list[_Step]:
        if not children and carried and parent_id is not None:  # nothing follows that could take it
            self._by_id[parent_id].parts += carried
        return [_Step(node_id=child, parent_id=parent_id, carried=deepcopy(carried)) for child in children]

    def _take(self, step: _Step, node: Node) -> _Open:
        """Put a node's parts into the open message, or begin one."""
        role = MessageRole.USER if node.kind is NodeKind.PERSON else MessageRole.ASSISTANT
        opened, parent_id = step.open, step.parent_id
        if opened is not None and not (node.joins and role == MessageRole.ASSISTANT and opened.has_room(node)):
            step.carried[:0] = self._calls_for(opened, [node.id])
            self._close(opened)
            parent_id, opened = self._made(opened.message.id), None
        if opened is None:
            message = ArchivedMessage(
                id=self._free_id(node.id),
                parent_id=parent_id,
                role=role,
                parts=[],
                created_at=node.created_at,
                metadata={},
            )
            opened = _Open(message=message)
        message = opened.message
        message.parts += step.carried
        message.parts += node.parts
        if node.answer is not None:
            _answer(opened, node)
        if node.model:
            message.metadata["model"] = node.model
        opened.byte_count += sum(byte_size(part) for part in node.parts if not isinstance(part, FileRef))
        self._places[node.id] = message.id
        return opened

    def _free_id(self, node_id: str) -> str:
        name, count = fitting_id(node_id), 1
        while name in self._by_id or name in self._unmade:
            count += 1
            name = fitting_id(f"{node_id}~{count}"[-128:])
        return name

    def _calls_for(self, opened: _Open, children: Sequence[str]) -> list[Content]:
        """The calls of a message whose results come in what follows it: they go there."""
        kinds = {self.nodes[child].kind for child in children}
        if NodeKind.RESULT not in kinds or NodeKind.PERSON in kinds:
            return []
        calls = cast("list[Content]", opened.calls)
        opened.message.parts = [part for part in opened.message.parts if not any(part is call for call in calls)]
        return calls

    def _close(self, opened: _Open) -> None:
        message = opened.message
        if not message.parts:
            self._unmade[message.id] = message.parent_id
            return
        self.messages.append(message)
        self._by_id[message.id] = message

    def _made(self, message_id: str | None) -> str | None:
        """The message itself, or the nearest one above it that was made."""
        while message_id is not None and message_id in self._unmade:
            message_id = self._unmade[message_id]
        return message_id


def _children(nodes: dict[str, Node]) -> dict[str, list[str]]:
    """The children of each node, in the order that it names, then in that of the archive."""
    below: dict[str, list[str]] = {}
    for node in nodes.values():
        if node.parent_id is not None:
            below.setdefault(node.parent_id, []).append(node.id)
    for parent_id, children in below.items():
        if parent_id in nodes:
            places = {child: place for place, child in enumerate(nodes[parent_id].children)}
            children.sort(key=lambda child: places.get(child, len(places)))
    return below


def _answer(opened: _Open, node: Node) -> None:
    """Give the call its result: the one that is named, else the first of the tool, else the last one at all."""
    answer = node.answer
    assert answer is not None
    calls = opened.calls
    named = [call for call in calls if answer.call_id and call["toolCallId"] == answer.call_id]
    same = [call for call in calls if call["toolName"] == answer.tool]
    call = next(iter(named or same or calls[-1:]), None)
    if call is None:
        call = call_part(answer.tool, fitting_id(answer.call_id or node.id), {})
        opened.message.parts.append(call)
    settle(call, answer.output, is_error=answer.is_error)


def newest(times: Iterable[datetime | None]) -> datetime | None:
    """The latest of some instants."""
    return max((each for each in times if each is not None), default=None)
