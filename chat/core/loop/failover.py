"""The choice among a turn's models, and the switch to the next one when one fails.

A turn stays with the model that it has: one that failed in it is not asked again in it, also after a crash, since each
switch is in the journal before the next model is asked. What was shown of the failed model's answer is sealed by the
loop, and the next model goes on from there.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol

from chat.core.model.fallbacks import Fallbacks, exhausted
from chat.core.model.language_model import LanguageModel
from chat.errors import ContextOverflow, ModelError, StreamStalled
from sessions_app.core.messages.shapes import OURS
from thinkproject.kernel.jsonvalue import JSONObject

FAILOVER_PREFIX: Final = "failover:"
RESTING: Final = "resting"
"""The code of a switch away from a model that had failed a moment before, in another turn of this process."""

ContextSize = Callable[[LanguageModel], int]
"""The tokens that a model takes; 0 where that is not known."""


class _Records(Protocol):
    """The part of a journal that is needed here."""

    async def recorded(self, key: str) -> JSONObject | None: ...

    async def record(self, key: str, value: JSONObject) -> None: ...


class ModelFailover:
    """The models of one turn. Where there is only one, nothing here happens."""

    def __init__(self, journal: _Records, context_size: ContextSize, switches: list[JSONObject]) -> None:
        """`switches`: filled with those of the turn, earlier attempts included."""
        self._switches = switches
        self._journal = journal
        self._context_size = context_size
        self._failed: dict[str, str] = {}  # error codes by name
        self._current = ""  # the model that the last switch led to
        self._breaks: Counter[str] = Counter()  # answers that broke off after something of them was shown
        self._asked: LanguageModel | None = None  # as the turn or the step named it: one model or a list
        self.last: JSONObject | None = None  # the last switch: `{for, from, to, code}`
        self._unreported: list[tuple[str, JSONObject]] = []  # switches of this attempt, not yet announced

    async def restore(self) -> None:
        """Take over the switches of earlier attempts."""
        while (record := await self._journal.recorded(f"{FAILOVER_PREFIX}{len(self._switches)}")) is not None:
            self._take(switch_of(record))

    def choose(self, model: LanguageModel) -> LanguageModel:
        """The model to ask now, of one or of a list. Errors: `ModelsExhausted` when all of a list have failed."""
        self._asked = model
        if not isinstance(model, Fallbacks):
            return model
        usable = [one for one in model.in_order() if one.name not in self._failed]
        if not usable:
            raise exhausted(self._failed)
        return next((one for one in usable if one.name == self._current), usable[0])

    async def settle(self, number: int, chosen: LanguageModel) -> None:
        """Stay with a model of a list; record it where the first one is passed over because it failed a moment ago.

        `number`: of the call.
        """
        asked = self._asked
        if not isinstance(asked, Fallbacks) or chosen.name == self._current:
            return
        is_other_list = self._current not in {one.name for one in asked.models}
        self._current = chosen.name
        first = asked.models[0].name
        if is_other_list and first not in {chosen.name, *self._failed}:
            await self._switch({"for": number, "from": first, "to": chosen.name, "code": RESTING})

    async def goes_on(self, number: int, model: LanguageModel, error: ModelError, *, is_shown: bool) -> bool:
        """Whether another model takes over from one that failed; the switch is recorded.

        A connection that broke in mid-answer is tried once more with the same model. Errors: `ModelsExhausted` when
        the list has no other one, and more than one was tried.
        """
        asked = self._asked
        if not isinstance(asked, Fallbacks) or len(asked.models) == 1:
            return False
        is_overflow = isinstance(error, ContextOverflow)
        if is_shown and error.may_go_on and not isinstance(error, StreamStalled):
            self._breaks[model.name] += 1
            if self._breaks[model.name] == 1:
                return False
        if not is_overflow:
            asked.health.failed(model.name, error)
        left = [one for one in asked.in_order() if one.name not in {*self._failed, model.name}]
        if is_overflow:
            left = [one for one in left if self._is_larger(one, model)]
        if not left:
            if is_overflow or (is_shown and error.may_go_on):
                return False
            raise exhausted({**self._failed, model.name: error.code}) from error
        await self._switch({"for": number, "from": model.name, "to": left[0].name, "code": error.code})
        return True

    def answered(self, model: LanguageModel) -> None:
        """Note that a model of a list answered."""
        if isinstance(self._asked, Fallbacks):
            self._asked.health.answered(model.name)

    def instead_of(self, model: LanguageModel) -> JSONObject:
        """The fact for people that a model answers in another one's place; nothing where it does not."""
        if self.last is None or self.last["to"] != model.name:
            return {}
        return {"insteadOf": {"model": self.last["from"], "code": self.last["code"]}}

    def note_stall(self, model: LanguageModel, error: ModelError) -> None:
        """Announce, before the next model call, that a model fell silent in mid-answer."""
        if isinstance(error, StreamStalled):
            self._unreported.append(("stalled", {"name": model.name, "code": error.code}))

    def reports(self) -> list[tuple[str, JSONObject]]:
        """The kinds and facts that are still to be announced; each is returned once."""
        reports, self._unreported = self._unreported, []
        return reports

    def _is_larger(self, one: LanguageModel, other: LanguageModel) -> bool:
        size = self._context_size(other)
        return 0 < size < self._context_size(one)

    async def _switch(self, record: JSONObject) -> None:
        await self._journal.record(f"{FAILOVER_PREFIX}{len(self._switches)}", record)
        self._take(record)
        self._unreported.append(("failover", record))

    def _take(self, record: JSONObject) -> None:
        self._current = record["to"]
        self.last = record
        self._switches.append(record)
        if record["code"] != RESTING:
            self._failed[record["from"]] = record["code"]


def switch_of(record: JSONObject) -> JSONObject:
    """A switch as people get it: the record without the additions of the journal."""
    return {name: record[name] for name in ("for", "from", "to", "code")}


def with_models(metadata: JSONObject | None, report: JSONObject | None) -> JSONObject | None:
    """The metadata of an answer, with the names of the models that gave it where there were several, and its end."""
    if report is None:
        return metadata
    named = {"models": [model["name"] for model in report["models"]]} if "models" in report else {}
    return {**(metadata or {}), OURS: {**report, **named}}
