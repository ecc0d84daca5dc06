"""The scripted provider: its language, its memory, its log. And that its lies are caught."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chat.core.context.prompt import GO_ON_TEXT
from chat.core.model.language_model import (
    AssistantMessage,
    Finish,
    LanguageModel,
    TextContent,
    ToolCallContent,
    ToolMessage,
)
from chat.errors import ModelError, NetworkLost, Overloaded
from chat.llm.adapters.chat_completions import ChatCompletionsModel
from chat.llm.endpoint import Endpoint
from chat.llm.scripted import Defaults, ScriptedModel, ScriptedServer, ServerOptions
from chat.llm.scripted.plan import MISMATCH, ScriptMessage, make_plan, read_chat, read_responses
from chat.llm.scripted.script import Call, Cut, Echo, HttpError, Misbehave, Option, Pace, Say, Wait, Words, parse
from chat.llm.testing import collect, make_request, reasoning_of, text_of, user

ANSWER = AssistantMessage(content=(TextContent(text="two"),))


@pytest.mark.parametrize(
    ("line", "directive"),
    [
        ("say: Hello, you.", Say(text="Hello, you.")),
        ("  SAY:hi", Say(text="hi")),
        ("reason: hmm", Say(text="hmm", kind="reasoning")),
        ("refuse", Say(text="I will not do that.", kind="refusal")),
        ("refuse: No.", Say(text="No.", kind="refusal")),
        ("stream 20 words", Words(count=20)),
        ("stream 20 chunks at 50/s", Words(count=20, rate=50.0)),
        ("reason 5 words", Words(count=5, kind="reasoning")),
        ('call tool read {"path": "a b"}', Call(name="read", arguments='{"path": "a b"}')),
        ("call tool mcp_x.y-z", Call(name="mcp_x.y-z", arguments="{}")),
        ("call tool read {} whole no-id", Call(name="read", arguments="{}", flags=frozenset({"whole", "no-id"}))),
        ("call tool read {} id=call_0", Call(name="read", arguments="{}", flags=frozenset({"id=call_0"}))),
        ("malformed tool args read", Call(name="read", arguments='{"path": "a.txt", "n": ')),
        ("drop after 3 chunks", Cut(line=0, how="drop", after=3)),
        ("stall after 1", Cut(line=0, how="stall", after=1)),
        ("stall after 1 for 2.5 s times 4", Cut(line=0, how="stall", after=1, seconds=2.5, times=4)),
        ("end after 2", Cut(line=0, how="end", after=2)),
        ("garbage after 2", Cut(line=0, how="garbage", after=2)),
        ("hang", Cut(line=0, how="hang")),
        ("hang for 1s times 2", Cut(line=0, how="hang", seconds=1.0, times=2)),
        ("error in stream after 2 code overloaded_error", Cut(line=0, how="error", after=2, code="overloaded_error")),
        ("misbehave skip chunk 3", Misbehave(how="skip", at=3)),
        ("misbehave repeat chunk 3", Misbehave(how="repeat", at=3)),
        ("rate 20/s", Pace(rate=20.0)),
        ("wait 0.5 s", Wait(seconds=0.5)),
        ("finish length", Option(name="finish", value="length")),
        ("usage 1 2", Option(name="usage", value="1 2")),
        ("marker: a", Option(name="marker", value="a")),
        ("parallel calls", Option(name="parallel", value="interleaved")),
        ("echo system", Echo(what="system")),
    ],
)
def test_a_line_is_a_directive(line: str, directive: object) -> None:
    assert parse(line) == [directive]


def test_errors_carry_their_options() -> None:
    (error,) = parse("error 429 code insufficient_quota retry-after 2 times 3")
    assert isinstance(error, HttpError)
    assert (error.status, error.code, error.headers, error.times) == (
        429,
        "insufficient_quota",
        (("retry-after", "2"),),
        3,
    )
    (overflow,) = parse("context overflow above 1000 characters")
    assert isinstance(overflow, HttpError)
    assert (overflow.code, overflow.above_characters, overflow.times) == ("context_length_exceeded", 1000, None)


def test_prose_is_no_directive() -> None:
    assert parse("Please say something.\nCan you stream 5 words to me?\nerror 200\n") == []


def plan_text(*messages: ScriptMessage, defaults: Defaults | None = None) -> str:
    return make_plan("", list(messages), [], defaults or Defaults()).text


async def test_it_counts_all_words_of_the_prompt(http_model: LanguageModel) -> None:
    """A count that left instructions and notes out would look as if the request had been cut."""
    sent = make_request("one two", "[Sent Friday 2026-11-27 16:02 UTC]")
    [finish] = [event for event in await collect(http_model, sent) if isinstance(event, Finish)]
    words = ["Be", "brief.", "one", "two", "[Sent", "Friday", "2026-11-27", "16:02", "UTC]"]
    assert finish.usage.input_tokens == len(words)


def test_plain_messages_get_the_same_text_each_time_and_another_for_another() -> None:
    said = ScriptMessage(role="user", text="hello there")
    assert plan_text(said) == plan_text(said)
    assert plan_text(said) != plan_text(ScriptMessage(role="user", text="hello you"))
    assert len(plan_text(said, defaults=Defaults(tokens=30)).split()) == 30


def test_a_second_question_gets_another_answer_than_the_first() -> None:
    said = ScriptMessage(role="user", text="hello")
    assert plan_text(said) != plan_text(said, ScriptMessage(role="assistant", text="hi"), said)


async def test_rounds_follow_the_results_of_tools() -> None:
    script = "say: A\ncall tool one {}\ncall tool two {}\nsay: B {results}\ncall tool three {}\nsay: C {result}"
    model = ScriptedModel()
    messages: list[object] = [script]
    texts = []
    for round_number, names in enumerate([("one", "two"), ("three",), ()]):
        events = await collect(model, make_request(*messages))  # type: ignore[arg-type]  # a growing list
        texts.append(text_of(events))
        calls = tuple(ToolCallContent(call_id=f"{name}{round_number}", tool_name=name, input={}) for name in names)
        messages.append(AssistantMessage(content=(TextContent(text=texts[-1]), *calls)))
        messages += [
            ToolMessage(call_id=call.call_id, tool_name=call.tool_name, output=f"<{call.tool_name}>") for call in calls
        ]
    assert texts == ["A", "B <one>, <two>", "C <three>"]


async def test_without_a_closing_line_it_reports_what_the_tool_returned() -> None:
    call = AssistantMessage(content=(ToolCallContent(call_id="c", tool_name="read", input={}),))
    result = ToolMessage(call_id="c", tool_name="read", output="hello")
    events = await collect(ScriptedModel(), make_request("call tool read {}", call, result))
    assert text_of(events) == "The tool read returned: hello"


async def test_a_break_belongs_to_the_output_before_it_and_a_pace_stays() -> None:
    model = ScriptedModel()
    with pytest.raises(NetworkLost):
        await collect(model, make_request("rate 1000/s\ncall tool read {}\ndrop after 1\nsay: x"))


@pytest.mark.parametrize("cut", range(0, 60, 7))
async def test_a_continuation_is_the_rest_of_the_same_answer(cut: int) -> None:
    model = ScriptedModel()
    whole = text_of(await collect(model, make_request("say: before\nreason: x\nstream 12 words")))
    partial = AssistantMessage(content=(TextContent(text=whole[:cut]),))
    go_on = user("You were interrupted. Go on.")
    rest = await collect(model, make_request("say: before\nreason: x\nstream 12 words", partial, go_on))
    assert text_of(rest) == whole[cut:]
    assert cut == 0 or reasoning_of(rest) == ""


async def test_a_continuation_still_makes_the_calls() -> None:
    partial = AssistantMessage(content=(TextContent(text="Let me lo"),))
    events = await collect(
        ScriptedModel(),
        make_request("say: Let me look.\ncall tool read {}", partial, user("Go on where you left off.")),
    )
    assert text_of(events) == "ok."
    assert any(type(event).__name__ == "ToolCallEnd" for event in events)


@pytest.mark.parametrize("partial", ["Let me lok", "Let me look..", "et me look", "Let me look.Let"])
async def test_a_partial_that_was_never_given_is_a_loud_mismatch(partial: str) -> None:
    said = AssistantMessage(content=(TextContent(text=partial),))
    events = await collect(ScriptedModel(), make_request("say: Let me look.", said, user("Go on where you left off.")))
    assert text_of(events) == MISMATCH


async def test_a_script_can_be_registered_for_messages(server: ScriptedServer, chat_model: LanguageModel) -> None:
    server.script("weather", "say: It rains.")
    assert text_of(await collect(chat_model, make_request("How is the weather?"))) == "It rains."
    assert text_of(await collect(chat_model, make_request("say: other"))) == "other"


async def test_echo_reports_what_was_received(http_model: LanguageModel) -> None:
    assert text_of(await collect(http_model, make_request("echo system", system="Be kind."))) == "Be kind."
    echoed = json.loads(text_of(await collect(http_model, make_request("one", ANSWER, "echo request"))))
    assert [message["text"] for message in echoed] == ["one", "two", "echo request"]


async def test_times_are_counted_per_conversation(chat_model: LanguageModel) -> None:
    for marker in ("a", "b"):
        script = f"marker: {marker}\nerror 500 times 1\nsay: ok"
        with pytest.raises(Overloaded):
            await collect(chat_model, make_request(script))
        assert text_of(await collect(chat_model, make_request(script))) == "ok"


async def test_overflow_depends_on_the_length_of_the_prompt(chat_model: LanguageModel) -> None:
    script = "context overflow above 500 characters\nsay: fits"
    assert text_of(await collect(chat_model, make_request(script))) == "fits"
    with pytest.raises(ModelError):
        await collect(chat_model, make_request("x" * 600, script))


async def test_the_log_holds_the_bytes_that_were_sent(server: ScriptedServer, chat_model: LanguageModel) -> None:
    await collect(chat_model, make_request("marker: m1\nsay: one two"))
    chunks = server.log("chunk")
    assert [(line["index"], line["text"], line["marker"]) for line in chunks] == [(0, "one ", "m1"), (1, "two", "m1")]
    assert all(line["bytes"].startswith("data: {") and line["bytes"].endswith("\n\n") for line in chunks)
    assert [line["kind"] for line in server.log()] == ["request", "chunk", "chunk", "end"]


async def read_with_recovery(model: LanguageModel, script: str) -> str:
    """A product in small: it keeps what it showed, and asks to go on after a break."""
    shown = ""
    for _ in range(5):
        partial = (
            (AssistantMessage(content=(TextContent(text=shown),)), user("Go on where you left off.")) if shown else ()
        )
        try:
            async for event in model.stream(make_request(script, *partial)):
                shown += text_of([event])
        except NetworkLost:
            continue
        return shown
    raise AssertionError("it never came to an end")


@pytest.mark.parametrize("breaks", ["", "drop after 5", "drop after 0", "drop after 5 times 3", "end after 7"])
async def test_the_log_is_the_oracle_of_an_answer_with_breaks(
    server: ScriptedServer, http_model: LanguageModel, breaks: str
) -> None:
    shown = await read_with_recovery(http_model, f"stream 30 words\n{breaks}")
    assert shown == server.answer()
    assert len(shown.split()) == 30


@pytest.mark.parametrize("lie", ["skip", "repeat"])
async def test_a_provider_that_lies_is_caught_by_the_oracle(
    server: ScriptedServer, http_model: LanguageModel, lie: str
) -> None:
    shown = await read_with_recovery(http_model, f"stream 30 words\nmisbehave {lie} chunk 4")
    assert shown != server.answer()


async def test_a_lie_before_a_break_makes_the_continuation_a_mismatch(
    server: ScriptedServer, http_model: LanguageModel
) -> None:
    shown = await read_with_recovery(http_model, "stream 30 words\nmisbehave skip chunk 2\ndrop after 9")
    assert shown.endswith(MISMATCH)
    with pytest.raises(AssertionError, match="never given"):
        server.answer()


async def test_a_marked_answer_goes_on_after_a_summary_of_what_was_before(http_model: LanguageModel) -> None:
    asked = user("marker: m1\nstream 20 words")
    whole = text_of(await collect(http_model, make_request("hello", AssistantMessage(content=()), asked)))
    shown = " ".join(whole.split()[:5]) + " "
    partial = AssistantMessage(content=(TextContent(text=shown),))
    rest = await collect(http_model, make_request("a summary", AssistantMessage(content=()), asked, partial))
    assert shown + text_of(rest) == whole


async def test_it_runs_as_a_process_of_its_own(endpoint_of: Callable[..., Endpoint], tmp_path: Path) -> None:
    options = ServerOptions(defaults=Defaults(tokens=7), models=("a", "b"), log_bodies=False)
    with ScriptedServer(options, log_path=tmp_path / "log.jsonl", process=True) as server:
        model = ChatCompletionsModel(endpoint_of(server), "a")
        shown = text_of(await collect(model, make_request("hello")))
        assert len(shown.split()) == 7
    assert server.answer() == shown
    assert server.requests() == [None]
    with pytest.raises(NetworkLost):
        await collect(model, make_request("still there?"))


def test_other_paths_and_broken_bodies_are_refused(server: ScriptedServer) -> None:
    for path, body in (
        ("/nothing", b"{}"),
        ("/chat/completions", b"not JSON"),
        ("/chat/completions", b'{"messages": 5}'),
    ):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(server.base_url + path, body)
        assert caught.value.code in (400, 404)
        caught.value.close()


async def test_the_line_that_the_loop_adds_is_known(http_model: LanguageModel) -> None:
    partial = AssistantMessage(content=(TextContent(text="one "),))
    events = await collect(http_model, make_request("say: one two", partial, user(GO_ON_TEXT)))
    assert text_of(events) == "two"


@pytest.mark.parametrize("read", [read_chat, read_responses])
def test_what_was_sent_is_counted_with_the_arguments_of_calls(read: Any) -> None:
    content = "x" * 8_000
    call = {"id": "c1", "type": "function", "function": {"name": "write", "arguments": f'{{"content": "{content}"}}'}}
    chat = {"messages": [{"role": "assistant", "content": "", "tool_calls": [call]}, {"role": "user", "content": "go"}]}
    item = {"type": "function_call", "call_id": "c1", "name": "write", "arguments": f'{{"content": "{content}"}}'}
    body = chat if read is read_chat else {"input": [item, {"role": "user", "content": "go"}]}
    system, messages = read(body)
    counted = make_plan(system, messages, [], Defaults()).usage["input"]
    assert counted == 1 + len(f'"{content}"}}') // 8 + 1  # of the arguments the name and the content, and "go"
