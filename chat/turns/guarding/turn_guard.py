"""The injection guard of a conversation during one attempt at a turn.

What was seen before is read once, and only where there was something. What the turn sees is known at once here, and
stored with the result that it is in; what is in no result is stored before the model is asked.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from chat.files.own_files import own_urls
from chat.instances.notifications import notify_conversation
from sessions_app.core.messages.parts import is_tool, tool_name
from sessions_app.core.messages.shapes import Message, Part
from thinkproject.kernel.aio import db
from tools_app.core.guard.rules import CLEAN, MAX_SOURCES, InjectionGuard, SeenText, Spot, Standing, texts_in
from tools_app.core.origins import Origin
from tools_app.core.tool import CallGuard, Tool
from tools_app.core.tool_calls import ToolResult, details_in
from tools_app.core.toolset import Toolset
from tools_app.errors import EgressClosed
from tools_app.guard.standings import GuardScope, see, standing_of, texts_of

MAX_NAMED: Final = 5
"""Texts that a question names."""

Found: TypeAlias = tuple[Spot, SeenText]
Fenced: TypeAlias = Callable[[], AbstractContextManager[object]]


class TurnGuard:
    """The guard of one conversation for one attempt at a turn. From any thread."""

    def __init__(self, rules: InjectionGuard, place: GuardScope, fenced: Fenced) -> None:
        """Clean, as far as is known. `fenced`: opens a transaction of the turn's."""
        self.rules = rules
        self.session_id = place.session_id
        self._place = place
        self._fenced = fenced
        self._count = 0  # texts that are stored, also those that do not count
        self._standing: Standing = CLEAN
        self._known: dict[Found, int] = {}  # stored, with their numbers, the oldest first
        self._fresh: dict[Found, None] = {}  # seen by this step
        self._loose: dict[Found, None] = {}  # in no result, and not stored yet

    async def load(self) -> None:
        """Read what was seen before. Two queries."""
        await self._refresh(await db(standing_of, self._place.session_id))

    def note(self, spot: Spot, text: SeenText) -> None:
        """Learn of a text that is in what a call returns, or will return."""
        if self.rules.counts(text.origin) and (spot, text) not in self._known:
            self._fresh[spot, text] = None

    def note_loose(self, origin: Origin, source: str) -> None:
        """Learn of a text that a hook of the agent has read."""
        found = (Spot(name=f"turn {self._place.turn_id}"), SeenText(origin, source))
        is_new = found not in self._known and len(self._loose) <= MAX_SOURCES  # more are not stored of one spot
        if is_new and self.rules.counts(origin):
            self._loose[found] = None

    async def see(self, texts: Iterable[SeenText], *, name: str) -> None:
        """Store texts that are in the context from the start of the turn and in no message.

        `name` differs whenever the text does (a fingerprint). No statement for what was seen before.
        """
        await self._store_found([(Spot(name=name), text) for text in texts])

    async def scan(self, messages: Sequence[Message], tools: Toolset, *, asker_id: Any) -> None:
        """Store what these messages hold of others and is not stored yet: attached files, results of clients.

        What the person who asks has uploaded by hand is that person's own text. A query where files are attached.
        """
        urls = {str(part.get("url", "")) for message in messages for part in _attached(message)}
        own = await db(own_urls, urls, asker_id) if urls and asker_id is not None else frozenset()
        await self._store_found([found for message in messages for found in _texts_of(message, tools, own)])

    async def begin_step(self) -> None:
        """A model is asked, and reads what the calls before have returned. A statement for loose texts alone."""
        loose, self._loose = list(self._loose), {}
        self._keep(list(self._fresh))
        self._fresh = {}
        await self._store_found(loose)

    def store_result(self, message_id: str, call_id: str, result: ToolResult) -> None:
        """Store what a result holds of others, in the transaction that records it. Sync."""
        self.store(Spot(message_id=message_id, call_id=call_id), texts_in(result.details))

    def store(self, spot: Spot, texts: Iterable[SeenText]) -> None:
        """Store texts of a spot in the present transaction. Sync; no statement where there are none."""
        counted = [text for text in texts if self.rules.counts(text.origin)]
        if counted and see(self._place, counted, at=spot):
            notify_conversation(self._place.owner_id, self._place.scope)

    def fresh_of(self, spot: Spot) -> list[SeenText]:
        """The texts that a call has seen so far."""
        return [text for each, text in list(self._fresh) if each == spot]

    def texts(self, *, includes_step: bool) -> list[SeenText]:
        """The texts of others in the conversation, the newest first."""
        found = [*self._known, *self._loose, *(self._fresh if includes_step else ())]
        return list(dict.fromkeys(text for _, text in reversed(found)))

    def named(self, *, includes_step: bool = True) -> list[SeenText]:
        """The texts that a question names."""
        return self.texts(includes_step=includes_step)[:MAX_NAMED]

    def may_be_guarded(self, *, includes_step: bool) -> bool:
        """Whether the conversation holds texts of others, as far as is known without a query."""
        return bool(self._known) or self._more(includes_step) > 0

    async def is_guarded(self, *, includes_step: bool) -> bool:
        """Whether calls need a decision now: a person may have decided since. A query where there are such texts."""
        if not self.may_be_guarded(includes_step=includes_step):
            return False
        await self._refresh(await db(standing_of, self._place.session_id))
        last = max(self._known.values(), default=0)
        return replace(self._standing, seen=last).is_guarded(self._more(includes_step))

    def _more(self, includes_step: bool) -> int:
        return len(self._loose) + (len(self._fresh) if includes_step else 0)

    async def _refresh(self, standing: Standing) -> None:
        self._standing = standing
        if standing.seen != self._count:
            stored = await db(texts_of, self._place.session_id)
            self._known = {found: number for found, number in stored.items() if self.rules.counts(found[1].origin)}
            self._fresh = {found: None for found in self._fresh if found not in self._known}
            self._count = standing.seen

    async def _store_found(self, found: Sequence[Found]) -> None:
        new = [each for each in dict.fromkeys(found) if self.rules.counts(each[1].origin) and each not in self._known]
        if new:
            await db(self._store_all, new)
            self._keep(new)

    def _store_all(self, found: Sequence[Found]) -> None:
        with self._fenced():
            for spot in dict.fromkeys(spot for spot, _ in found):
                self.store(spot, [text for each, text in found if each == spot])

    def _keep(self, found: Sequence[Found]) -> None:
        """Take what is stored by now; the numbers are those that it has unless another has written meanwhile."""
        for each in found:
            if each not in self._known:
                self._count += 1
                self._known[each] = self._count


def lets_run(rules: InjectionGuard, tool: Tool) -> bool:
    """Whether calls of a tool need no decision in a guarded conversation."""
    return rules.lets_run(tool.name, tool.source, is_read_only=tool.read_only, is_open_world=tool.open_world)


@dataclass(frozen=True, slots=True)
class GuardOfCall:
    """The guard for one call before it begins: a `tools_app.core.tool.CallGuard`.

    `includes_step`: what its own step has seen counts.
    """

    guard: TurnGuard
    spot: Spot
    includes_step: bool = False
    is_approved: bool = False

    def begun(self, *, is_approved: bool = False) -> "GuardOfCall":
        """The guard for the call once it runs, and for the calls that code makes within it."""
        return replace(self, includes_step=True, is_approved=is_approved)

    @property
    def session_id(self) -> str:
        """The conversation."""
        return self.guard.session_id

    async def must_ask(self, tool: Tool) -> bool:
        """Whether a person has to decide about the call, as things are now."""
        return self.may_ask(tool) and await self.guard.is_guarded(includes_step=self.includes_step)

    def may_ask(self, tool: Tool) -> bool:
        """The same as far as is known without a query."""
        return not lets_run(self.guard.rules, tool) and self.guard.may_be_guarded(includes_step=self.includes_step)

    async def check_egress(self, target: str) -> None:
        """Refuse to send anything while the conversation is guarded. Errors: `EgressClosed`."""
        if not self.is_approved and await self.guard.is_guarded(includes_step=True):
            sources = ", ".join(text.source or text.origin.value for text in self.guard.named())
            raise EgressClosed(
                f"Nothing is sent to {target} now: the conversation contains text of strangers ({sources}). "
                "A person has to allow it."
            )

    def note(self, origin: Origin, source: str) -> None:
        """Take a text that is in what the call returns."""
        self.guard.note(self.spot, SeenText(origin, source))

    def texts(self) -> list[SeenText]:
        """The texts of others that the call may pass on."""
        return self.guard.texts(includes_step=True)

    def approved(self) -> CallGuard:
        """The guard for a call within it that a person has approved."""
        return replace(self, is_approved=True)


@dataclass(frozen=True, slots=True)
class TurnReach:
    """The reading and writing of a turn beside its calls, as of its hooks: a `tools_app.core.guard.reach.Reach`."""

    guard: TurnGuard

    @property
    def session_id(self) -> str:
        """The conversation of the turn."""
        return self.guard.session_id

    def note(self, origin: Origin, source: str) -> None:
        """A hook has read this."""
        self.guard.note_loose(origin, source)

    def written(self) -> Origin | None:
        """The origin of what hooks write."""
        return Origin.FILE if self.texts() else None

    def texts(self) -> list[SeenText]:
        """The texts of others that it may pass on."""
        return self.guard.texts(includes_step=True)


def _attached(message: Message) -> list[Part]:
    return [part for part in message["parts"] if part.get("type") == "file"] if message["role"] == "user" else []


def _texts_of(message: Message, tools: Toolset, own: Collection[str]) -> list[Found]:
    """The texts of others that a message holds. Results of clients are judged by their tool."""
    found: list[Found] = []
    for part in _attached(message):
        if str(part.get("url", "")) not in own:
            name = str(part.get("filename") or part.get("mediaType") or "")
            found.append((Spot(message_id=message["id"]), SeenText(Origin.FILE, name)))
    for part in message["parts"]:
        if message["role"] != "assistant" or not is_tool(part):
            continue
        spot = Spot(message_id=message["id"], call_id=str(part.get("toolCallId") or ""))
        texts = texts_in(details_in(part))
        name = tool_name(part)
        tool = tools.get(name) if name in tools else None
        if not texts and tool is not None and tool.is_client and "output" in part:
            texts = [SeenText(tool.origin, tool.title or tool.name)]
        found += [(spot, text) for text in texts]
    return found
