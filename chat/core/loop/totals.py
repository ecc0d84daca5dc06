"""The usage of a turn: of its settled model calls, and of attempts that gave no answer and cost something."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Final, TypeAlias

from chat.core.loop.failover import FAILOVER_PREFIX, switch_of
from chat.core.model.language_model import DIRECT_CALL, Spent, Usage
from chat.core.model.prices import NOTHING
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

CostOf: TypeAlias = Callable[[tuple[str, ...], Usage], Decimal]
"""The cost of one call of a model that goes by these names, the most exact one first."""

MODEL_PREFIX: Final = "model:"
"""Of the keys of model calls in a journal."""


@dataclass(slots=True, kw_only=True)
class TurnTotals:
    """The usage of a turn, recorded steps included. Updated by the loop, read by its caller."""

    usage: Usage = field(default_factory=Usage)
    cost: Decimal = NOTHING
    steps: int = 0
    model_name: str = ""
    finish_reason: str = ""
    output: JSONValue = None  # the structured answer, once it is there
    ended: str = ""  # why the answer is over where the model was not done
    models: dict[str, JSONObject] = field(default_factory=dict)  # what each was used for, in the order of their use
    switches: list[JSONObject] = field(default_factory=list)  # from one model to the next: `{for, from, to, code}`
    unrecorded: list[JSONObject] = field(default_factory=list)  # uses of failed attempts that no record has yet

    @property
    def report(self) -> JSONObject | None:
        """The models that answered, the switches, and why it ended; nothing where one model answered and was done."""
        ended = {"ended": self.ended} if self.ended else {}
        models = {name: use for name, use in self.models.items() if name != DIRECT_CALL}  # that is none
        if len(models) < 2 and not self.switches:
            return ended or None
        return {"models": [{"name": n, **use} for n, use in models.items()], "switches": self.switches} | ended

    def count(self, record: JSONObject) -> None:
        """Add the record of a settled model call, and what attempts before it used that gave no answer."""
        for use in record.get("spent", ()):
            self.count_use(use)
        self.count_use(record)
        self.model_name = record.get("model_name") or self.model_name
        if record["ends_step"]:
            self.steps += 1
            self.finish_reason = str(record.get("finish", ""))

    def spend(self, model: str, attempts: Iterable[Spent], cost_of: CostOf) -> None:
        """Keep what attempts without an answer used, until the next record takes it."""
        for spent in attempts:
            cost = cost_of((model, spent.model_name), spent.usage)
            self.unrecorded.append({"model": model, "usage": asdict(spent.usage), "cost": str(cost)})

    def count_use(self, record: JSONObject) -> None:
        """Add one use of a model: `{model, usage, cost}`."""
        usage, cost = Usage(**record.get("usage", {})), Decimal(record.get("cost", 0))
        self.usage += usage
        self.cost += cost
        if record.get("model"):
            use = self.models.setdefault(record["model"], {"calls": 0, "tokens": 0, "cost": "0"})
            use["calls"] += 1
            use["tokens"] += usage.input_tokens + usage.output_tokens
            use["cost"] = str(Decimal(use["cost"]) + cost)


def totals_of(records: Mapping[str, JSONValue], unrecorded: Iterable[JSONObject] = ()) -> TurnTotals:
    """Usage of a turn that does not continue, from its journal. `unrecorded`: of the attempt that it ends with."""
    totals = TurnTotals()
    for key, record in records.items():
        if key.startswith(MODEL_PREFIX):
            totals.count(record)
        elif key.startswith(FAILOVER_PREFIX):
            totals.switches.append(switch_of(record))
    for use in unrecorded:
        totals.count_use(use)
    return totals
