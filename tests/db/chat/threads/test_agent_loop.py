"""`AgentLoop`: the loop by itself, `done`, lines of JSON, trimming. Nothing here has a database."""

import asyncio
from typing import Any

import pytest

from chat.core.wire.brief_events import ReasoningPiece, TextPiece, ToolCalled
from chat.core.wire.ndjson import LineReader, line_of
from chat.errors import TurnConfigInvalid
from chat.llm.scripted import ScriptedModel
from chat.think import AgentLoop, done, tool
from sessions_app.core.messages.shapes import NewMessage

CALLED: list[str] = []


@tool
def note(text: str) -> str:
    """Write something down."""
    CALLED.append(text)
    return f"noted {text}"


@tool
def recite() -> str:
    """Recite a long text."""
    return "x" * 9_000


def asked(*texts: str) -> list[NewMessage]:
    return [{"role": "user", "parts": [{"type": "text", "text": text}]} for text in texts]


def loop(**options: Any) -> tuple[AgentLoop, ScriptedModel]:
    CALLED.clear()
    model = ScriptedModel()
    return AgentLoop(model=model, tools=[note, recite, done], **options), model


async def test_a_run_calls_tools_until_the_model_answers() -> None:
    agent, model = loop(system="Be brief.")
    result = await agent.run(asked('call tool note {"text": "a"}\nsay: Noted.'))
    assert (result.type, result.text, CALLED) == ("text", "Noted.", ["a"])
    assert len(model.requests) == 2
    assert [part["type"] for part in result.message["parts"] if part["type"] != "step-start"] == ["tool-note", "text"]


async def test_a_step_asks_once_and_runs_no_call() -> None:
    agent, model = loop()
    result = await agent.step(asked('call tool note {"text": "a"}\nsay: Noted.'))
    assert (result.type, CALLED, len(model.requests)) == ("tool-calls-pending", [], 1)
    [call] = result.tool_calls
    assert (call["toolName"], call["input"]) == ("note", {"text": "a"})
    said = await agent.step(asked("say: Nothing to do."))
    assert (said.type, said.text, said.tool_calls) == ("text", "Nothing to do.", ())


async def test_a_failure_of_the_model_is_a_result() -> None:
    agent, _ = loop()
    for result in (await agent.step(asked("error 400")), await agent.run(asked("error 400"))):
        assert result.type == "error"
        assert result.error


async def test_done_ends_the_run_with_one_call_of_the_model_and_its_summary_is_the_text() -> None:
    agent, model = loop()
    lines = [line async for line in agent.stream(asked('call tool done {"summary": "All written."}'))]
    assert lines == ['{"t":"tool","n":"done","a":{"summary":"All written."}}\n']
    result = await agent.run(asked('call tool done {"summary": "All written."}'))
    assert (result.type, result.text) == ("text", "All written.")
    assert len(model.requests) == 2  # one for each


async def test_text_goes_before_the_summary() -> None:
    agent, _ = loop()
    result = await agent.run(asked('say: Here it is.\ncall tool done {"summary": "Done."}'))
    assert result.text == "Here it is."


async def test_a_run_ends_at_its_limit_with_one_last_answer() -> None:
    agent, model = loop(max_steps=2)
    await agent.run(asked("\n".join(f'call tool note {{"text": "{n}"}}\nsay: {{result}}' for n in range(9))))
    assert len(model.requests) == 3
    assert len(CALLED) == 2


async def test_a_run_can_be_stopped_and_keeps_what_was_said() -> None:
    agent, _ = loop()
    signal = asyncio.Event()
    lines = []
    async for line in agent.stream(asked("stream 200 words"), signal=signal):
        lines.append(line)
        signal.set()
    assert 0 < len(lines) < 200
    result = await agent.run(asked("stream 200 words"), signal=signal)
    assert (result.type, result.text) == ("text", "")  # it was set before


async def test_a_stream_is_lines_of_text_thought_and_calls() -> None:
    agent, _ = loop()
    script = 'reason: Hm.\ncall tool note {"text": "a"}\nsay: Noted.'
    reader = LineReader()
    events = [event async for line in agent.stream(asked(script)) for event in reader.feed(line)]
    kinds = list(dict.fromkeys(type(event) for event in events))
    assert kinds == [ReasoningPiece, ToolCalled, TextPiece]
    assert "".join(event.delta for event in events if isinstance(event, TextPiece)) == "Noted."


async def test_long_results_are_cut_and_of_many_messages_the_first_and_the_last_are_sent() -> None:
    agent, model = loop()
    history = [message for number in range(25) for message in exchange(number)]
    await agent.run([*history, *asked("call tool recite {}\nsay: Recited.")])
    first, second = (request["messages"] for request in model.requests)
    assert "question 0" in str(first[0])
    assert len(first) < 30
    [cut] = [message for message in second if message["role"] == "tool"]
    assert 7_000 < len(str(cut["content"])) <= 8_000


def exchange(number: int) -> list[NewMessage]:
    answer: NewMessage = {"role": "assistant", "parts": [{"type": "text", "text": f"answer {number}"}]}
    return [*asked(f"question {number}"), answer]


def test_lines_are_read_from_pieces_that_end_anywhere_and_broken_ones_are_skipped() -> None:
    text = '{"t":"text","d":"a\\n"}\nnot json\n[]\n{"t":"odd"}\n{"t":"think","d":7}\n{"t":"tool","n":"x","a":{"b":1}}'
    for size in (1, 3, len(text)):
        reader = LineReader()
        found = [event for at in range(0, len(text), size) for event in reader.feed(text[at : at + size])]
        assert [*found, *reader.flush()] == [TextPiece("a\n"), ToolCalled("x", {"b": 1})]
        assert reader.flush() == []


def test_other_chunks_have_no_line() -> None:
    assert [line_of(chunk) for chunk in ({"type": "finish"}, {"type": "text-start", "id": "0"}, None)] == ["", "", ""]


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(TurnConfigInvalid, match="context_policy"):
        AgentLoop(model=ScriptedModel(), policy="guess")
