"""UI messages to model messages: texts, files, calls with their one result, repairs and truncation."""

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest

from chat.core.context.context_policy import (
    CODING,
    LAST_CALLS,
    READ_TIME,
    WHOLE,
    ContextPolicy,
    context_policy,
    truncate,
)
from chat.core.context.prompt import (
    FIRST_TEXT,
    GO_ON_TEXT,
    NOTHING_TEXT,
    WAITING_TEXT,
    to_model_messages,
    with_last_calls,
)
from chat.core.model.language_model import (
    AssistantMessage,
    FileContent,
    ModelMessage,
    ReasoningContent,
    TextContent,
    ToolCallContent,
    ToolMessage,
    UserMessage,
)
from chat.errors import TurnConfigInvalid
from sessions_app.core.messages import call_texts
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.core.messages.truncation import cut_text
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

STEP: Part = {"type": "step-start"}
GO_ON = UserMessage(content=(TextContent(text=GO_ON_TEXT),))


def text(value: str, **more: JSONValue) -> Part:
    return cast("Part", {"type": "text", "text": value, **more})


def user(*parts: Part | str) -> Message:
    return {"id": "u", "role": "user", "parts": [text(p) if isinstance(p, str) else p for p in parts]}


def assistant(*parts: Part | str) -> Message:
    return {"id": "a", "role": "assistant", "parts": [text(p) if isinstance(p, str) else p for p in parts]}


def tool(call_id: str = "c", *, state: str = "output-available", **more: JSONValue) -> Part:
    part = {"type": "tool-add", "toolCallId": call_id, "toolName": "add", "state": state, "input": {"a": 1}, **more}
    return cast("Part", part)


def failed(why: str) -> Part:
    return tool(state="output-error", errorText=why)


def said(*texts: str) -> UserMessage:
    return UserMessage(content=tuple(TextContent(text=value) for value in texts))


def answered(*texts: str) -> AssistantMessage:
    return AssistantMessage(content=tuple(TextContent(text=value) for value in texts))


def result_of(part: Part) -> ToolMessage:
    _, made, result, *_ = to_model_messages([user("hi"), assistant(part)])
    assert isinstance(made, AssistantMessage)
    assert isinstance(result, ToolMessage)
    return result


def test_conversation() -> None:
    history = [user("hi"), assistant(STEP, "hello"), user("more")]
    assert to_model_messages(history) == (said("hi"), answered("hello"), said("more"))


def test_prompt_never_ends_with_the_assistant() -> None:
    assert to_model_messages([user("hi"), assistant("hel")]) == (said("hi"), answered("hel"), GO_ON)


def test_prompt_is_never_empty() -> None:
    expected = (said(NOTHING_TEXT),)
    assert to_model_messages([]) == expected
    assert to_model_messages([user(text(" \n")), assistant(STEP), cast("Message", {"role": "user"})]) == expected


def test_roles_alternate() -> None:
    history = [user("a"), user("b"), assistant("c"), assistant("d"), user("e")]
    assert to_model_messages(history) == (said("a", "b"), answered("c", "d"), said("e"))


def test_a_system_notice_is_sent_as_the_user() -> None:
    assert to_model_messages([{"id": "s", "role": "system", "parts": [text("note")]}, user("a")]) == (
        said("note", "a"),
    )


def test_call_and_result_follow_each_other() -> None:
    history = [user("hi"), assistant(STEP, "let me see", tool(output={"sum": 2}), STEP, "two"), user("ok")]
    assert to_model_messages(history) == (
        said("hi"),
        AssistantMessage(
            content=(
                TextContent(text="let me see"),
                ToolCallContent(call_id="c", tool_name="add", input={"a": 1}),
            )
        ),
        ToolMessage(call_id="c", tool_name="add", output={"sum": 2}),
        answered("two"),
        said("ok"),
    )


def test_parallel_calls_are_one_message_with_results_in_order() -> None:
    history = [user("hi"), assistant(STEP, tool("c1", output=1), tool("c2", output=2))]
    _, calls, *results = to_model_messages(history)
    assert [call.call_id for call in calls.content if isinstance(call, ToolCallContent)] == ["c1", "c2"]  # type: ignore[union-attr]  # which kind it is, is what is asserted
    assert [(r.call_id, r.output) for r in results if isinstance(r, ToolMessage)] == [("c1", 1), ("c2", 2)]


def test_prompt_may_end_with_a_result() -> None:
    assert isinstance(to_model_messages([user("hi"), assistant(tool(output=1))])[-1], ToolMessage)


def test_calls_of_two_messages_do_not_mix() -> None:
    made = to_model_messages([user("hi"), assistant(tool("c1", output=1)), assistant(tool("c2", output=2))])
    kinds = [type(message) for message in made]
    assert kinds == [UserMessage, AssistantMessage, ToolMessage, AssistantMessage, ToolMessage]


@pytest.mark.parametrize(
    ("part", "output", "is_error"),
    [
        (tool(output=None), None, False),
        (tool(output="x", preliminary=True), "x", False),
        (tool(state="output-error", errorText="boom"), "boom", True),
        (tool(state="output-error"), call_texts.INTERRUPTED, True),
        (tool(state="input-streaming"), call_texts.INTERRUPTED, True),
        (tool(state="input-available"), call_texts.INTERRUPTED, True),
        (tool(state="approval-requested", approval={"id": "p"}), call_texts.INTERRUPTED, True),
        (tool(state="approval-requested", approval={"id": "p", "descriptor": {"lasting": True}}), WAITING_TEXT, False),
        (tool(state="approval-responded", approval={"id": "p", "approved": True}), call_texts.NOT_RUN, True),
        (tool(state="approval-responded", approval={"id": "p", "approved": False}), call_texts.DENIED, True),
        (
            tool(state="output-denied", approval={"id": "p", "approved": False, "reason": "too risky"}),
            "too risky",
            True,
        ),
        (tool(state="output-denied"), call_texts.DENIED, True),
        (tool(state="something-new"), call_texts.INTERRUPTED, True),
    ],
    ids=str,
)
def test_each_state_of_a_call_has_a_result(part: Part, output: JSONValue, is_error: bool) -> None:
    result = result_of(part)
    assert (result.output, result.is_error) == (output, is_error)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"input": '{"a": 1}'}, {"a": 1}),
        ({"input": [1]}, {}),
        ({"input": None, "rawInput": '{"b": 2}'}, {"b": 2}),
        ({"input": None, "rawInput": '{"b'}, {}),
    ],
)
def test_inputs_are_objects(given: Part, expected: JSONObject) -> None:
    call = to_model_messages([user("hi"), assistant(tool(output=1) | given)])[1].content[0]  # type: ignore[union-attr]  # which kind it is, is what is asserted
    assert isinstance(call, ToolCallContent)
    assert call.input == expected


def test_ids_used_twice_are_distinguished() -> None:
    history = [user("hi"), assistant(tool(output=1)), user("more"), assistant(tool(output=2), tool("c-2", output=3))]
    results = [m for m in to_model_messages(history) if isinstance(m, ToolMessage)]
    assert [(result.call_id, result.output) for result in results] == [("c", 1), ("c-2", 2), ("c-2-2", 3)]


def test_call_without_an_id_gets_one() -> None:
    assert result_of(tool("", output=1)).call_id == "call"


def test_tool_name_keeps_to_allowed_characters() -> None:
    part: Part = {**tool(output=1), "type": "dynamic-tool", "toolName": "weird name/" + "x" * 80}
    assert result_of(part).tool_name == ("weird_name_" + "x" * 80)[:64]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "tool-add", "output": 1},
        {"type": "tool-add", "toolCallId": "c", "output": 1},
        {"type": "tool-add", "toolCallId": 3, "state": "output-available"},
        {"type": "dynamic-tool", "toolCallId": "c", "state": "output-available"},
        {"type": "data-x", "data": 1},
        {"type": "source-url", "sourceId": "s", "url": "u"},
        {"text": "no type"},
        "no part",
    ],
    ids=str,
)
def test_orphans_and_what_a_model_does_not_read_stay_out(part: JSONValue) -> None:
    message: Message = {"id": "a", "role": "assistant", "parts": [part, text("hello")]}
    assert to_model_messages([user("hi"), message]) == (said("hi"), answered("hello"), GO_ON)


SIGNED: Part = {"type": "reasoning", "text": "hm", "state": "done", "providerMetadata": {"p": {"signature": "s"}}}


def test_signed_reasoning_is_sent_back_before_what_it_led_to() -> None:
    made = to_model_messages([user("hi"), assistant(STEP, SIGNED, "so"), user("ok")])[1]
    assert made == AssistantMessage(
        content=(ReasoningContent(text="hm", provider_metadata={"p": {"signature": "s"}}), TextContent(text="so"))
    )


@pytest.mark.parametrize(
    "history",
    [
        assistant(STEP, {**SIGNED, "state": "streaming"}, "so"),
        assistant(STEP, {"type": "reasoning", "text": "hm", "state": "done"}, "so"),
        assistant(STEP, {**SIGNED, "providerMetadata": {}}, "so"),
        assistant(STEP, "so", STEP, SIGNED),
    ],
    ids=["cut", "unsigned", "empty", "led to nothing"],
)
def test_other_reasoning_stays_out(history: Message) -> None:
    assert to_model_messages([user("hi"), history, user("ok")])[1] == answered("so")


PNG = FileContent(media_type="image/png", data=b"\x89PNG", filename="cat.png")
IMAGE: Part = {"type": "file", "url": "/files/1", "mediaType": "image/png", "filename": "cat.png"}


def file_content(
    loaded: FileContent | None,
    *,
    accepts_images: bool = True,
    accepts_documents: bool = False,
    sends_media: bool = True,
) -> ModelMessage:
    load: Callable[[str], FileContent | None] = {"/files/1": loaded}.get
    (message,) = to_model_messages(
        [user(IMAGE)],
        accepts_images=accepts_images,
        accepts_documents=accepts_documents,
        load_file=load,
        sends_media=sends_media,
    )
    return message


def test_image_is_sent_to_a_model_that_can_see() -> None:
    assert file_content(PNG) == UserMessage(content=(PNG,))


def test_image_is_named_to_a_model_that_cannot_see() -> None:
    assert file_content(PNG, accepts_images=False) == said(
        '[The user attached "cat.png" (image/png). You cannot see its content.]'
    )


PDF = FileContent(media_type="application/pdf", data=b"%PDF", filename="a.pdf")


def test_a_document_is_sent_to_a_model_that_takes_documents() -> None:
    assert file_content(PDF, accepts_documents=True) == UserMessage(content=(PDF,))


def test_a_document_is_named_to_a_model_that_does_not_take_it() -> None:
    assert file_content(PDF) == said('[The user attached "a.pdf" (PDF document). You cannot see its content.]')


def test_the_text_of_a_document_is_sent_where_the_document_is_not() -> None:
    letter = replace(PDF, text="Dear Ada")
    as_text = said('[The user attached "a.pdf" (PDF document):]\nDear Ada')
    assert file_content(letter, accepts_documents=True) == UserMessage(content=(letter,))
    assert file_content(letter) == as_text
    assert file_content(letter, sends_media=False) == as_text
    assert file_content(replace(letter, data=b""), accepts_documents=True) == as_text


@pytest.mark.parametrize(
    ("encoding", "named"),
    [
        ("utf-16", "UTF-16 LE with BOM"),
        ("cp1252", "Windows-1252 (assumed: its bytes do not say)"),
        ("utf-8-sig", "UTF-8 with BOM"),
    ],
)
def test_text_in_another_encoding_is_read_out_and_the_encoding_named(encoding: str, named: str) -> None:
    content = FileContent(media_type="text/csv", data="Größe;5 €".encode(encoding), filename="n.csv")
    assert file_content(content) == said(f'[The user attached "n.csv" (text/csv), in {named}:]\nGröße;5 €')


def test_other_binary_file_is_named() -> None:
    packed = FileContent(media_type="application/zip", data=b"PK", filename="a.zip")
    assert file_content(packed, accepts_documents=True) == said(
        '[The user attached "a.zip" (zip archive). You cannot see its content.]'
    )


@pytest.mark.parametrize("media_type", ["text/plain; charset=utf-8", "application/json", "image/svg+xml", "text/csv"])
def test_text_file_is_read_out(media_type: str) -> None:
    content = FileContent(media_type=media_type, data="é\n".encode(), filename="n.txt")
    assert file_content(content, accepts_images=False) == said(f'[The user attached "n.txt" ({media_type}):]\né\n')


def test_file_that_is_gone_is_named() -> None:
    expected = said('[The user attached "cat.png" (image/png). It is no longer available.]')
    assert file_content(None) == expected
    assert to_model_messages([user(IMAGE)]) == (expected,)
    assert to_model_messages([user({"type": "file"})]) == (
        said('[The user attached "a file" (unknown type). It is no longer available.]'),
    )


def test_file_of_the_assistant_is_named() -> None:
    assert to_model_messages([user("hi"), assistant(IMAGE)])[1] == answered('[You made "cat.png" (image/png).]')


def test_lone_surrogates_are_replaced() -> None:
    part = tool(output="\ud83d")
    made = to_model_messages([user("cut \ud83d"), assistant(part)])
    assert made[0] == said("cut \ufffd")
    assert made[2].output == "\ufffd"  # type: ignore[union-attr]  # which kind it is, is what is asserted


def test_older_messages_are_cut_for_the_model() -> None:
    long = "x" * 10_001
    history = [user(long), assistant("a" * 10_000, tool(output="o" * 501)), *[user(long)] * 4]
    cut = truncate(history)
    assert cut[0]["parts"][0]["text"] == cut_text(long, 10_000)
    assert cut[1]["parts"][0]["text"] == "a" * 10_000
    assert cut[1]["parts"][1]["output"] == cut_text("o" * 501, 500)
    assert truncate(cut) == cut
    assert cut[2:] == history[2:]
    assert len(history[0]["parts"][0]["text"]) == 10_001


def test_older_results_that_are_no_text_stay_of_their_kind() -> None:
    policy = ContextPolicy(keep_messages=0, max_output_chars=200)
    rows, small = {"rows": "r" * 300, "n": 7}, {"a": 1}
    parts = [tool(output=rows), tool(output=["x" * 60] * 9), tool(output=small), failed("e" * 201)]
    (message,) = truncate([assistant(*parts)], policy)
    cut, items, same, error = message["parts"]
    assert cut["output"]["n"] == 7
    assert cut["output"]["rows"].startswith("rrr")
    assert cut["output"]["rows"].endswith("rrr")
    assert cut["output"]["rows"].count("characters truncated]") == 1
    assert items["output"][-1].startswith("Array output truncated")
    assert same["output"] == small
    assert error["errorText"] == cut_text("e" * 201, 200)
    assert truncate([message], policy) == [message]
    assert rows["rows"] == "r" * 300


def test_policy_may_leave_texts_or_results_whole() -> None:
    message = assistant("x" * 20_000, tool(output="o" * 600))
    policy = ContextPolicy(keep_messages=0, max_output_chars=None, max_text_chars=None)
    assert truncate([message], policy) == [message]
    assert len(to_model_messages([message], policy=None)) == 3  # a user's first


def test_a_history_that_begins_with_an_answer_has_a_users_message_first() -> None:
    first, *_ = to_model_messages([assistant("Hello."), user("Hi.")])
    assert first == said(FIRST_TEXT)


def test_short_history_is_not_cut() -> None:
    assert cut_text("abc", 3) == "abc"
    assert truncate([user("x" * 20_000)])[0]["parts"][0]["text"] == "x" * 20_000


def test_messages_in_which_nothing_is_cut_are_not_copied() -> None:
    history = [user("short"), assistant({"type": "text", "text": "short"}), *[user("new")] * 4, user("x" * 10_001)]
    made = truncate(history, ContextPolicy(keep_messages=0))
    assert [new is old for new, old in zip(made, history, strict=True)] == [True] * 6 + [False]


def answered_by(call_id: str, output: JSONValue = "out", text: str = "done") -> Message:
    return assistant(STEP, tool(call_id, output=output), STEP, text)


def calls_of(messages: tuple[ModelMessage, ...]) -> list[str]:
    made = [c for m in messages if isinstance(m, AssistantMessage) for c in m.content]
    return [c.call_id for c in made if isinstance(c, ToolCallContent)]


def test_last_calls_sends_calls_of_the_last_two_messages_only() -> None:
    history = [user("a"), answered_by("c1"), user("b"), answered_by("c2"), user("c")]
    kept = with_last_calls(history, LAST_CALLS)
    assert to_model_messages(kept, policy=LAST_CALLS) == (
        said("a"),
        answered("done"),
        said("b"),
        answered("done"),
        said("c"),
    )
    assert history[1]["parts"][1]["output"] == "out"


def test_a_call_whose_result_is_among_the_last_two_stays_with_it() -> None:
    history = [user("a"), answered_by("c1"), user("b"), assistant(STEP, tool("c2", output=1))]
    kept = with_last_calls(history, LAST_CALLS)
    assert calls_of(to_model_messages(kept, policy=LAST_CALLS)) == ["c2"]


def test_an_answer_that_went_on_after_a_decision_keeps_its_calls() -> None:
    history = [user("a"), answered_by("c1"), user("b"), *(assistant(STEP, tool(f"d{n}", output=n)) for n in range(4))]
    kept = with_last_calls(history, LAST_CALLS)
    assert calls_of(to_model_messages(kept, policy=LAST_CALLS)) == ["d0", "d1", "d2", "d3"]


def test_an_answer_that_went_on_after_a_decision_is_whole() -> None:
    read = [assistant(STEP, tool(f"d{number}", output="o" * 900)) for number in range(6)]
    older, newer = [user("a"), assistant(STEP, tool("c1", output="o" * 900))], [user("b"), *read]
    made = truncate([*older, *newer])
    assert made == [*older, *newer]
    assert len(truncate([*older, *older, *newer])[1]["parts"][1]["output"]) < 600
    assert truncate([*older, *older, *newer])[2:] == [*older, *newer]


def test_a_message_of_calls_alone_is_left_out() -> None:
    history = [user("a"), assistant(STEP, tool("c1", output=1)), user("b"), assistant("x"), user("c")]
    kept = with_last_calls(history, LAST_CALLS)
    assert to_model_messages(kept, policy=LAST_CALLS) == (said("a", "b"), answered("x"), said("c"))


def test_coding_cuts_every_output_to_8000_characters() -> None:
    (_, _, result) = to_model_messages([user("a"), assistant(tool(output="o" * 8_001))], policy=CODING)
    assert isinstance(result, ToolMessage)
    assert result.output == cut_text("o" * 8_001, 8_000)
    (_, _, whole) = to_model_messages([user("a"), assistant(tool(output="o" * 8_000))], policy=CODING)
    assert isinstance(whole, ToolMessage)
    assert whole.output == "o" * 8_000


def talk(count: int) -> list[Message]:
    return [user(f"u{n}") if n % 2 == 0 else assistant(f"a{n}") for n in range(count)]


def test_coding_keeps_the_first_question_and_the_last_25_of_more_than_40() -> None:
    assert len(to_model_messages(talk(39), policy=CODING)) == 39
    made = to_model_messages(talk(41), policy=CODING)
    assert made == (said("u0", "u16"), *to_model_messages(talk(41), policy=None)[17:])


def test_coding_parts_no_call_from_its_result() -> None:
    steps = [part for n in range(40) for part in (STEP, tool(f"c{n}", output=n))]
    history = [user("first"), assistant("ok"), user("go"), assistant(*steps)]
    made = to_model_messages(history, policy=CODING)
    assert made[0] == said("first")
    assert isinstance(made[1], AssistantMessage)
    assert calls_of(made) == [m.call_id for m in made if isinstance(m, ToolMessage)]
    assert len(made) in (26, 27)


def test_presets_are_named() -> None:
    assert context_policy("read-time") is READ_TIME
    own = ContextPolicy(keep_messages=1)
    assert context_policy(own) is own
    with pytest.raises(TurnConfigInvalid, match=r"'coding'.*not 'all'"):
        context_policy("all")


def test_whole_cuts_nothing() -> None:
    history = [user("x" * 20_000), answered_by("c", output={"o": "o" * 20_000}), *[user("y")] * 5]
    assert to_model_messages(history, policy=WHOLE) == to_model_messages(history, policy=None)


@pytest.mark.parametrize("media_type", ["image/png", "application/pdf", "audio/mpeg"])
def test_media_are_named_where_they_are_not_sent(media_type: str) -> None:
    part: Part = {"type": "file", "mediaType": media_type, "url": "/f/1", "filename": "cat"}
    loaded = FileContent(media_type=media_type, data=b"\x89", filename="cat")
    made = to_model_messages([user("see", part)], accepts_images=True, load_file=lambda _: loaded, sends_media=False)
    assert made == (said("see", f"[Attached {media_type}: cat]"),)


def test_files_of_text_are_sent_all_the_same() -> None:
    part: Part = {"type": "file", "mediaType": "text/plain", "url": "/f/1", "filename": "notes"}
    loaded = FileContent(media_type="text/plain", data=b"words", filename="notes")
    (made,) = to_model_messages([user(part)], load_file=lambda _: loaded, sends_media=False)
    assert "words" in str(made)
