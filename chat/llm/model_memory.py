"""Facts that servers give of their models, and lessons of their refusals: remembered by address and model.

Each process has a copy; the shared cache carries it to the others and over a restart, where there is one. It is never
needed: what is forgotten is asked or refused once more. One lesson is a change of the whole, so that two processes that
learn at once lose nothing of each other's.
"""

import asyncio
import hashlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final

from redis.exceptions import RedisError

from thinkproject.kernel.cache import shared_cache
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump

logger = logging.getLogger("chat.llm")

MAX_MODELS: Final = 256
KEEP_SECONDS: Final = 24 * 3600
"""How long a lesson counts in other processes: servers are set up anew, and learn."""

KEEP_PROBED_SECONDS: Final = 90 * 24 * 3600
"""How long the findings of a probe count after the last lesson: a person asked for them."""

RECALL_SECONDS: Final = 10.0
"""How old the knowledge of a process may be when a request begins: others learn too, a probe above all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """Facts and lessons of one model at one address. Nothing known is 0, `None` or empty.

    `asked_at`: epoch seconds of the last answer about the model, or of the attempt. `left_out`: options that are not
    sent, `renamed`: those that are sent under another name. `refused_tools`: by name, a mark of the declaration that
    was refused, so that a mended one is sent again. `inputs`: media by the report of its server, `refused_inputs`:
    those for which a request was refused. `refused_schemas`: whether the requests had tools in which the schema of the
    answer was refused; some refuse the two together only. `price`: as `THINK_PRICES` has it. `demands`: what its
    history has to have (`adapters/demands.py`). `server`: the kind of server that runs it, as that calls itself.
    `abilities`: what a probe found, by the names of `Ability`.
    """

    asked_at: float = 0.0
    context_tokens: int = 0
    output_tokens: int = 0
    calls_tools: bool | None = None
    inputs: tuple[str, ...] | None = None
    price: JSONObject = field(default_factory=dict)
    cuts_silently: bool = False
    left_out: tuple[str, ...] = ()
    renamed: dict[str, str] = field(default_factory=dict)
    refused_tools: dict[str, str] = field(default_factory=dict)
    refused_inputs: tuple[str, ...] = ()
    refused_schemas: tuple[bool, ...] = ()
    demands: tuple[str, ...] = ()
    server: str = ""
    abilities: dict[str, bool] = field(default_factory=dict)


NOTHING: Final = Learned()
_NAMES: Final = frozenset(each.name for each in fields(Learned))


class ModelMemory:
    """The memory of this process. Bounded; what was used least recently is forgotten first. For any thread."""

    def __init__(self, *, is_shared: bool = True) -> None:
        """`is_shared`: whether other processes get what this one learns, and this one what they did."""
        self._is_shared = is_shared
        self._known: OrderedDict[tuple[str, str], tuple[Learned, float]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, base_url: str, model: str) -> Learned:
        """The knowledge of this process; nothing before the first `recall`."""
        with self._lock:
            return self._known.get((base_url, model), (NOTHING, 0.0))[0]

    async def recall(self, base_url: str, model: str) -> Learned:
        """The same; the first time in a process, and after a while, the others' is read. Never raises."""
        with self._lock:
            known, read_at = self._known.get((base_url, model), (None, 0.0))
        is_fresh = not self._is_shared or time.monotonic() - read_at < RECALL_SECONDS
        return known if known is not None and is_fresh else await asyncio.to_thread(self.read, base_url, model)

    def read(self, base_url: str, model: str) -> Learned:
        """The knowledge of all processes, read anew; else of this one. Blocks for a moment; never raises."""
        found = (_load(base_url, model) if self._is_shared else None) or self.of(base_url, model)
        self._keep(base_url, model, found)
        return found

    async def learn(self, base_url: str, model: str, change: Callable[[Learned], Learned]) -> Learned:
        """Change what is known, here and for the other processes. Never raises."""
        return await asyncio.to_thread(self._learn, base_url, model, change)

    def _learn(self, base_url: str, model: str, change: Callable[[Learned], Learned]) -> Learned:
        learned = change(self.read(base_url, model))
        self._keep(base_url, model, learned)
        if not self._is_shared:
            return learned
        try:
            seconds = KEEP_PROBED_SECONDS if learned.abilities else KEEP_SECONDS
            shared_cache().set(_name(base_url, model), asdict(learned), seconds)
        except (RedisError, OSError):
            logger.info("a lesson is not shared", extra={"action": "model_lesson_not_shared", "model": model})
        return learned

    def _keep(self, base_url: str, model: str, learned: Learned) -> None:
        with self._lock:
            self._known[base_url, model] = (learned, time.monotonic())
            self._known.move_to_end((base_url, model))
            while len(self._known) > MAX_MODELS:
                self._known.popitem(last=False)

    def clear(self) -> None:
        """Forget all, in this process. For tests."""
        with self._lock:
            self._known.clear()


@dataclass(frozen=True, slots=True)
class MemoryOfModel:
    """The part of a memory that is about one model at one address, for the adapter that asks it."""

    memory: ModelMemory
    base_url: str
    model: str

    @property
    def known(self) -> Learned:
        """The knowledge of this process; nothing before the first `recall`."""
        return self.memory.of(self.base_url, self.model)

    async def recall(self) -> Learned:
        """The same, read anew after a while. Never raises."""
        return await self.memory.recall(self.base_url, self.model)

    async def learn(self, change: Callable[[Learned], Learned]) -> None:
        """Change what is known, here and for the other processes. Never raises."""
        await self.memory.learn(self.base_url, self.model, change)


def declaration_mark(name: str, description: str, schema: JSONValue) -> str:
    """A mark of a tool's declaration: another one of the same name was not refused yet."""
    return hashlib.sha256(dump([name, description, schema]).encode()).hexdigest()[:16]


def _load(base_url: str, model: str) -> Learned | None:
    try:
        stored: Any = shared_cache().get(_name(base_url, model))
    except (RedisError, OSError):
        return None
    if not isinstance(stored, dict) or set(stored) - _NAMES:  # another version's
        return None
    inputs = stored.get("inputs")
    return Learned(
        **{
            **stored,
            "left_out": tuple(stored.get("left_out", ())),
            "demands": tuple(stored.get("demands", ())),
            "refused_inputs": tuple(stored.get("refused_inputs", ())),
            "refused_schemas": tuple(stored.get("refused_schemas", ())),
            "inputs": None if inputs is None else tuple(inputs),
        }
    )


def _name(base_url: str, model: str) -> str:
    return f"think.model.{hashlib.sha256(f'{base_url} {model}'.encode()).hexdigest()[:32]}"


model_memory: Final = ModelMemory()
