"""The opening of a turn that a command began: calls that are made before the model is asked for the first time."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from chat.core.loop.hooks import StepConfig, StepContext
from chat.core.model.language_model import ModelMessage, TextContent, ToolMessage, UserMessage
from chat.llm.direct_call import DirectCall
from chat.turns.execution.turn_facts import TurnFacts
from tools_app.core.tool_calls import ToolCall

_NOT_MADE: Final = -1


def with_opening(facts: TurnFacts, context: StepContext, config: StepConfig | None) -> StepConfig | None:
    """The configuration of a step: the calls while they are not made, then the command's model and its line.

    The line stands right behind the results in every request, so the beginning of the prompt stays the same.
    """
    opening = facts.opening
    if opening is None or facts.direct_call is not None:
        return config
    config = config or StepConfig()
    messages = context.messages if config.messages is None else config.messages
    calls = tuple(ToolCall(**call) for call in opening["calls"])
    made = _last_result(messages, calls)
    if calls and made == _NOT_MADE:
        return replace(config, model=DirectCall(calls=calls), tool_choice="auto")
    if opening["model"] and config.model is None:
        config = replace(config, model=opening["model"])
    if opening["then"]:
        line = UserMessage(content=(TextContent(text=opening["then"]),))
        config = replace(config, messages=(*messages[: made + 1], line, *messages[made + 1 :]))
    return config


def _last_result(messages: Sequence[ModelMessage], calls: Sequence[ToolCall]) -> int:
    ids = {call.call_id for call in calls}
    places = [at for at, each in enumerate(messages) if isinstance(each, ToolMessage) and each.call_id in ids]
    return places[-1] if places else _NOT_MADE
