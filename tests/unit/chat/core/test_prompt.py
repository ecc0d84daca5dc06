"""UI messages to model messages: texts, files, calls with their one result, repairs and truncation."""

from collections.abc import Callable

import pytest

from chat.core.language_model import (
    AssistantMessage,
    FileContent,
    ModelMessage,
    ReasoningContent,
    TextContent,
    ToolCallContent,
    ToolMessage,
    UserMessage,
)
from chat.core.prompt import (
    DENIED_TEXT,
    GO_ON_TEXT,
    INTERRUPTED_TEXT,
    NOT_RUN_TEXT,
    NOTHING_TEXT,
    Truncation,
    cut_text,
    to_model_messages,
    truncate,
)
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

STEP: JSONObject = {"type": "step-start"}
GO_ON = UserMessage(content=(TextContent(text=GO_ON_TEXT),))


def text(value: str, **more: JSONValue) -> JSONObject:
    return {"type": "text", "text": value, **more}


def user(*parts: JSONObject | str) -> JSONObject:
    return {"id": "u", "role": "user", "parts": [text(p) if isinstance(p, str) else p for p in parts]}


def assistant(*parts: JSONObject | str) -> JSONObject:
    return {"id": "a", "role": "assistant", "parts": [text(p) if isinstance(p, str) else p for p in parts]}


def tool(call_id: str = "c", *, state: str = "output-available", **more: JSONValue) -> JSONObject:
    return {"type": "tool-add", "toolCallId": call_id, "toolName": "add", "state": state, "input": {"a": 1}, **more}


def said(*texts: str) -> UserMessage:
    return UserMessage(content=tuple(TextContent(text=value) for value in texts))


def answered(*texts: str) -> AssistantMessage:
    return AssistantMessage(content=tuple(TextContent(text=value) for value in texts))


def result_of(part: JSONObject) -> ToolMessage:
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
    assert to_model_messages([user(text(" \n")), assistant(STEP), {"role": "user"}]) == expected


def test_roles_alternate() -> None:
    history = [user("a"), user("b"), assistant("c"), assistant("d"), user("e")]
    assert to_model_messages(history) == (said("a", "b"), answered("c", "d"), said("e"))


def test_notice_of_the_system_is_told_as_the_user() -> None:
    assert to_model_messages([{"role": "system", "parts": [text("note")]}, user("a")]) == (said("note", "a"),)


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
        (tool(state="output-error"), INTERRUPTED_TEXT, True),
        (tool(state="input-streaming"), INTERRUPTED_TEXT, True),
        (tool(state="input-available"), INTERRUPTED_TEXT, True),
        (tool(state="approval-requested", approval={"id": "p"}), INTERRUPTED_TEXT, True),
        (tool(state="approval-responded", approval={"id": "p", "approved": True}), NOT_RUN_TEXT, True),
        (tool(state="approval-responded", approval={"id": "p", "approved": False}), DENIED_TEXT, True),
        (
            tool(state="output-denied", approval={"id": "p", "approved": False, "reason": "too risky"}),
            "too risky",
            True,
        ),
        (tool(state="output-denied"), DENIED_TEXT, True),
        (tool(state="something-new"), INTERRUPTED_TEXT, True),
    ],
    ids=str,
)
def test_each_state_of_a_call_has_a_result(part: JSONObject, output: JSONValue, is_error: bool) -> None:
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
def test_inputs_are_objects(given: JSONObject, expected: JSONObject) -> None:
    call = to_model_messages([user("hi"), assistant(tool(output=1) | given)])[1].content[0]  # type: ignore[union-attr]  # which kind it is, is what is asserted
    assert isinstance(call, ToolCallContent)
    assert call.input == expected


def test_ids_used_twice_are_told_apart() -> None:
    history = [user("hi"), assistant(tool(output=1)), user("more"), assistant(tool(output=2), tool("c-2", output=3))]
    results = [m for m in to_model_messages(history) if isinstance(m, ToolMessage)]
    assert [(result.call_id, result.output) for result in results] == [("c", 1), ("c-2", 2), ("c-2-2", 3)]


def test_call_without_an_id_gets_one() -> None:
    assert result_of(tool("", output=1)).call_id == "call"


def test_tool_name_keeps_to_allowed_characters() -> None:
    part = {**tool(output=1), "type": "dynamic-tool", "toolName": "weird name/" + "x" * 80}
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
    message = {"role": "assistant", "parts": [part, text("hello")]}
    assert to_model_messages([user("hi"), message]) == (said("hi"), answered("hello"), GO_ON)


SIGNED = {"type": "reasoning", "text": "hm", "state": "done", "providerMetadata": {"p": {"signature": "s"}}}


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
def test_other_reasoning_stays_out(history: JSONObject) -> None:
    assert to_model_messages([user("hi"), history, user("ok")])[1] == answered("so")


PNG = FileContent(media_type="image/png", data=b"\x89PNG", filename="cat.png")
IMAGE = {"type": "file", "url": "/files/1", "mediaType": "image/png", "filename": "cat.png"}


def file_content(loaded: FileContent | None, *, accepts_images: bool = True) -> ModelMessage:
    load: Callable[[str], FileContent | None] = {"/files/1": loaded}.get
    (message,) = to_model_messages([user(IMAGE)], accepts_images=accepts_images, load_file=load)
    return message


def test_image_is_sent_to_a_model_that_can_see() -> None:
    assert file_content(PNG) == UserMessage(content=(PNG,))


def test_image_is_named_to_a_model_that_cannot_see() -> None:
    assert file_content(PNG, accepts_images=False) == said(
        '[The user attached "cat.png" (image/png). You cannot see its content.]'
    )


def test_other_binary_file_is_named() -> None:
    pdf = FileContent(media_type="application/pdf", data=b"%PDF", filename="a.pdf")
    assert file_content(pdf) == said('[The user attached "a.pdf" (application/pdf). You cannot see its content.]')


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
    assert cut[0]["parts"][0]["text"] == "x" * 10_000 + "... [truncated 10001 chars]"
    assert cut[1]["parts"][0]["text"] == "a" * 10_000
    assert cut[1]["parts"][1]["output"] == "o" * 500 + "... [truncated 501 chars]"
    assert cut[2:] == history[2:]
    assert len(history[0]["parts"][0]["text"]) == 10_001


def test_older_results_that_are_no_text_are_cut_as_json() -> None:
    policy = Truncation(keep_messages=0, max_output_chars=10)
    big, small = tool(output={"rows": [1, 2, 3]}), tool(output={"a": 1})
    (message,) = truncate([assistant(big, small, tool(state="output-error", errorText="e" * 11))], policy)
    assert message["parts"][0]["output"] == '{"rows":[1... [truncated 16 chars]'
    assert message["parts"][1]["output"] == {"a": 1}
    assert message["parts"][2]["errorText"] == "e" * 10 + "... [truncated 11 chars]"


def test_policy_may_leave_texts_or_results_whole() -> None:
    message = assistant("x" * 20_000, tool(output="o" * 600))
    policy = Truncation(keep_messages=0, max_output_chars=None, max_text_chars=None)
    assert truncate([message], policy) == [message]
    assert len(to_model_messages([message], truncation=None)) == 2


def test_short_history_is_not_cut() -> None:
    assert cut_text("abc", 3) == "abc"
    assert truncate([user("x" * 20_000)])[0]["parts"][0]["text"] == "x" * 20_000
