"""The input of one turn of the loop."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from chat.core.loop.context_window import ContextReducer
from chat.core.loop.failover import ContextSize
from chat.core.loop.hooks import ModelChoice
from chat.core.loop.request_records import RequestRecorder
from chat.core.loop.step_limit import StepLimit
from chat.core.loop.totals import CostOf
from chat.core.loop.turn_state import Clock
from chat.core.model.language_model import LanguageModel, ModelMessage, ModelSettings, ToolSpec
from chat.core.model.output_schema import Output
from chat.core.model.prices import NOTHING
from sessions_app.core.messages.forms import NO_FORMS, KeptForms
from sessions_app.core.messages.shapes import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPlan:
    """The input of one turn. `prompt` builds the full message list from the assistant message so far."""

    request_id: str
    assistant_id: str
    model: LanguageModel
    resolve_model: Callable[[ModelChoice], LanguageModel]
    system: str
    prompt: Callable[[Message], tuple[ModelMessage, ...]]
    forms: KeptForms = NO_FORMS  # of the messages that it makes
    tools: tuple[ToolSpec, ...] = ()
    found: tuple[ToolSpec, ...] = ()  # not declared: called through the finders
    finders: tuple[ToolSpec, ...] = ()
    reader: ToolSpec | None = None  # reads on in outputs that were cut
    needs_reader: Callable[[Message], bool] = lambda _answer: False
    tool_choice: str = "auto"
    settings: ModelSettings = field(default_factory=ModelSettings)
    limit: StepLimit = field(default_factory=StepLimit)
    output: Output | None = None
    shared: Any = None
    send_reasoning: bool = True
    reducer: ContextReducer | None = None  # without one an overflow ends the turn
    cost_of: CostOf = lambda _names, _usage: NOTHING
    context_size: ContextSize = lambda _model: 0
    titles: Mapping[str, str] = field(default_factory=dict)  # names of tools for people
    clock: Clock
    partial_output_shown: bool = False  # a former attempt showed something of the step that is not recorded
    requests: RequestRecorder = field(default_factory=RequestRecorder)  # goes on from those of the turns before
