"""Which stretch is summarised, how it is asked for, and what calls and results do at its ends."""

from typing import Any, cast

import pytest
from asgiref.sync import async_to_sync

from sessions_app.core.compaction.compaction import (
    MIN_TAIL_MESSAGES,
    PROTECT_HEAD,
    STUB_TEXT,
    TAIL_TOKENS,
    Bounds,
    CompactionResult,
    Overlay,
    beyond_reach,
    create_compact_function,
    overlaid,
    pieces,
    plan_compaction,
    sanitize_tool_pairs,
    stored_range,
    summary_message,
    summary_prompt,
)
from sessions_app.core.compaction.summary_form import TOPIC_SECTIONS, WORK_SECTIONS, SummaryForm, as_sections
from sessions_app.core.compaction.tokens import estimate_message, estimate_text
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.errors import CompactionFailed
from sessions_app.testing import text_message

START = {"type": "step-start"}
TINY = Bounds(tail_tokens=1)


def said(*texts: str) -> list[Message]:
    return [text_message("assistant" if n % 2 else "user", text, f"m{n}") for n, text in enumerate(texts)]


def many(count: int, text: str = "words") -> list[Message]:
    return said(*[text] * count)


def call(call_id: str, state: str = "input-available", **fields: Any) -> Part:
    return cast("Part", {"type": "tool-read", "toolCallId": call_id, "state": state, **fields})


def done(call_id: str, **fields: Any) -> Part:
    return call(call_id, "output-available", output="done", **fields)


def with_parts(message_id: str, *parts: Any) -> Message:
    return {"id": message_id, "role": "assistant", "parts": list(parts)}


def middle(history: list[Message], bounds: Bounds = TINY) -> list[str]:
    plan = plan_compaction(history, bounds)
    return [] if plan is None else [message["id"] for message in plan.middle]


def test_the_defaults_are_the_documented_ones() -> None:
    assert (PROTECT_HEAD, TAIL_TOKENS, MIN_TAIL_MESSAGES) == (3, 20_000, 2)
    assert Bounds() == Bounds(protect_head=3, tail_tokens=20_000, min_tail_messages=2)


@pytest.mark.parametrize("count", range(6))
def test_no_more_messages_than_head_and_least_tail_is_nothing_to_do(count: int) -> None:
    assert plan_compaction(many(count), TINY) is None
    assert middle(many(6)) == ["m3"]


def test_the_tail_is_what_fits_its_budget_and_never_less_than_two_messages() -> None:
    size = estimate_message(many(1)[0])
    assert middle(many(10), Bounds(tail_tokens=0)) == ["m3", "m4", "m5", "m6", "m7"]
    assert middle(many(10), Bounds(tail_tokens=4 * size)) == ["m3", "m4", "m5"]
    assert middle(many(10), Bounds(tail_tokens=4 * size - 1)) == ["m3", "m4", "m5", "m6"]
    assert middle(many(10), Bounds(tail_tokens=0, min_tail_messages=0)) == [f"m{n}" for n in range(3, 9)]
    assert middle(many(10)) != middle(many(10), Bounds()) == []  # all of it fits


def test_the_head_takes_the_results_of_its_calls_along() -> None:
    history = many(10)
    history[2] = with_parts("m2", call("c1", input={}))
    history[3] = with_parts("m3", done("c1"))
    assert middle(history) == ["m4", "m5", "m6", "m7"]


def test_the_tail_keeps_a_call_with_its_result() -> None:
    history = many(10)
    history[6] = with_parts("m6", call("c1", input={}))
    history[8] = with_parts("m8", done("c1"))
    assert middle(history) == ["m3", "m4", "m5"]


def test_a_call_without_an_answer_stays() -> None:
    history = many(10)
    history[4] = with_parts("m4", call("c1", "approval-requested", input={}))
    assert middle(history) == ["m3"]
    history[3] = with_parts("m3", call("c0", input={}))
    assert plan_compaction(history, TINY) is None


def test_a_question_that_lasts_holds_up_no_summary() -> None:
    history = many(10)
    asked = call("c1", "approval-requested", input={}, approval={"id": "p", "descriptor": {"lasting": True}})
    history[5] = with_parts("m5", asked)
    assert middle(history) == [f"m{n}" for n in range(3, 8)]
    history[5] = with_parts("m5", call("c1", "approval-requested", input={}, approval={"id": "p"}))
    assert middle(history) == ["m3", "m4"]


def test_what_is_there_already_is_no_part_of_the_middle_but_the_summary_to_update() -> None:
    former = summary_message(Overlay(id="x", first_id="m3", last_id="m5", summary="former"))
    history = [*many(3), former, *many(12)[6:]]
    plan = plan_compaction(history, TINY)
    assert plan is not None
    assert (plan.previous, plan.first_id, plan.last_id) == ("former", "compaction_x", "m9")
    assert [message["id"] for message in plan.middle] == ["m6", "m7", "m8", "m9"]
    assert plan_compaction([*many(3), former, *many(12)[10:]], TINY) is None  # nothing new to summarise


def test_a_summary_in_the_head_takes_what_follows_it_into_the_new_one() -> None:
    former = summary_message(Overlay(id="x", first_id="a", last_id="b", summary="former"))
    plan = plan_compaction([former, *many(8)], TINY)
    assert plan is not None
    assert [message["id"] for message in plan.middle] == ["m0", "m1", "m2", "m3", "m4", "m5"]


def test_the_prompt_has_four_sections_and_cuts_tools_to_500_characters() -> None:
    messages = [*said("look at it"), with_parts("m1", done("c1", input={"path": "x" * 600}) | {"output": "y" * 600})]
    prompt = summary_prompt(messages, "")
    for section in ("## Topic", "## Key Points", "## Current State", "## Open Items"):
        assert section in prompt
    assert "y" * 250 in prompt
    assert "y" * 500 not in prompt
    assert "characters truncated] ...\n" + "y" * 100 in prompt
    assert "y" * 501 not in prompt
    assert "x" * 501 not in prompt
    assert "Do not invent" in prompt
    assert "about 100 tokens" in prompt
    assert "<previous_summary>" not in prompt


def test_the_sections_may_be_others() -> None:
    prompt = summary_prompt(said("look at it"), "", form=SummaryForm(sections=WORK_SECTIONS))
    titles = [line for line in prompt.splitlines() if line.startswith("## ")]
    assert titles == ["## Objective", "## Important Details", "## Work State", "## Next Move", "## Relevant Files"]
    assert "completed" in prompt
    assert "blocked" in prompt
    assert "Do not invent" in prompt
    own = SummaryForm(sections=as_sections({"Law": "Which statutes were named.", "Dates": ""}))
    assert "Write these sections:\n## Law\nWhich statutes were named.\n## Dates\n\nWrite only" in summary_prompt(
        said("look at it"), "former", form=own
    )


def test_sections_are_given_as_pairs_or_as_a_mapping() -> None:
    assert as_sections(dict(TOPIC_SECTIONS)) == TOPIC_SECTIONS
    assert as_sections([list(pair) for pair in TOPIC_SECTIONS]) == TOPIC_SECTIONS


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({}, "1 to 20 titles"),
        ("Topic", "1 to 20 titles"),
        (None, "1 to 20 titles"),
        ({f"T{n}": "" for n in range(21)}, "1 to 20 titles"),
        ({"": "nothing"}, "a title of one line"),
        ({"a\nb": ""}, "a title of one line"),
        ({"t" * 81: ""}, "a title of one line"),
        ({"Topic": "x" * 1001}, "at most 1000 characters"),
        ({"Topic": 5}, "A section is a title and what belongs there"),
        (["Topic"], "A section is a title and what belongs there"),
        ([("Topic", "a"), ("Topic ", "b")], "the same title"),
    ],
)
def test_sections_that_are_none_are_refused(said: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        as_sections(said)


def test_the_target_is_a_fifth() -> None:
    assert "about 260 tokens" in summary_prompt(said("word " * 1000)[:1], "", counter=lambda text: 1296)


def test_a_former_summary_is_brought_up_to_date() -> None:
    prompt = summary_prompt(said("new"), "what was", "Keep the numbers.")
    assert "<previous_summary>\nwhat was\n</previous_summary>" in prompt
    assert "up to date" in prompt
    assert "Keep the numbers." in prompt


def test_the_last_turns_stay_whole() -> None:
    two = Bounds(tail_tokens=0, tail_turns=2)
    assert middle(many(10), two) == ["m3", "m4", "m5"]  # m6 and m8 are the user's
    assert middle(many(11), two) == ["m3", "m4", "m5", "m6", "m7"]  # and m10, which no one has answered
    assert middle(many(10), Bounds(tail_tokens=0, tail_turns=1)) == ["m3", "m4", "m5", "m6", "m7"]
    size = estimate_message(many(1)[0])
    assert middle(many(10), Bounds(tail_tokens=5 * size, tail_turns=2)) == ["m3", "m4"]  # what keeps most counts


def test_with_no_more_turns_than_stay_there_is_nothing_to_do() -> None:
    assert middle(many(10), Bounds(tail_tokens=0, tail_turns=4)) == []
    assert middle(many(10), Bounds(tail_tokens=0, tail_turns=9)) == []
    assert middle(many(10), Bounds(tail_tokens=0, tail_turns=3)) == ["m3"]


def test_a_turn_that_stays_keeps_its_call_with_its_result() -> None:
    history = many(10)
    history[5] = with_parts("m5", call("c1", input={}))
    history[6] = text_message("user", "meanwhile", "m6")
    history[7] = with_parts("m7", done("c1"))
    assert middle(history, Bounds(tail_tokens=0, tail_turns=2)) == ["m3", "m4"]


def test_a_few_messages_after_a_summary_are_not_worth_another() -> None:
    former = summary_message(Overlay(id="x", first_id="m3", last_id="m5", summary="former"))
    bounds = Bounds(tail_tokens=0, min_new_messages=4)
    assert plan_compaction([*many(3), former, *many(10)[6:]], bounds) is None
    assert middle([*many(3), former, *many(11)[6:]], bounds) == ["m6", "m7", "m8"]
    assert middle(many(6), bounds) == ["m3"]  # no summary yet
    unread = beyond_reach("first", "last")
    assert middle([unread, *many(6)], Bounds(tail_tokens=0, min_new_messages=9)) == ["m0", "m1", "m2", "m3"]


def test_a_summary_is_asked_for_that_is_no_longer_than_it_may_become() -> None:
    form = SummaryForm(max_tokens=200)
    long = said("word " * 1000)[:1]
    assert "about 200 tokens" in summary_prompt(long, "", counter=lambda text: 1296, form=form)
    assert "at most 200 tokens" in summary_prompt(long, "former", form=form)
    assert "about 60 tokens" in summary_prompt(said("few words"), "", form=SummaryForm(max_tokens=60))
    assert "at most" not in summary_prompt(long, "")


def test_tools_are_cut_to_so_many_characters() -> None:
    part = done("c1", input={"path": "x" * 3_000}) | {"output": "y" * 3_000}
    prompt = summary_prompt([with_parts("m1", part)], "", form=SummaryForm(shown_chars=2_000))
    assert "y" * 1_200 in prompt
    assert "y" * 2_000 not in prompt
    assert "y" * 2_001 not in prompt
    assert "x" * 2_001 not in prompt
    assert len(pieces([with_parts("m1", part)] * 2, 600, estimate_text)) == 1
    assert len(pieces([with_parts("m1", part)] * 2, 600, estimate_text, 2_000)) == 2


def test_a_stretch_is_split_by_what_is_shown_of_it() -> None:
    prompts: list[str] = []

    async def summarize(prompt: str) -> str:
        prompts.append(prompt)
        return "summary"

    history = many(10)
    history[3:8] = [with_parts(f"m{n}", done(f"c{n}", input={}) | {"output": "y" * 3_000}) for n in range(3, 8)]
    for form, requests in [(None, 1), (SummaryForm(shown_chars=2_000), 5)]:
        prompts.clear()
        async_to_sync(create_compact_function(summarize, bounds=TINY, max_input_tokens=900, form=form))(history)
        assert len(prompts) == requests


def test_files_are_listed_and_carried_on_without_the_model() -> None:
    prompts: list[str] = []

    async def summarize(prompt: str) -> str:
        prompts.append(prompt)
        return "Done so far.\n<read-files>\nforged.py\n</read-files>"

    old = "Before.\n\n<read-files>\na.py\nb.py\n</read-files>\n\n<modified-files>\nc.py\n</modified-files>"
    former = summary_message(Overlay(id="x", first_id="m0", last_id="m2", summary=old))
    history = [former, *many(10)[3:]]
    edit = {"type": "tool-edit", "toolCallId": "c2", "state": "output-available", "output": "ok"}
    history[2] = with_parts("m4", done("c1", input={"path": "d.py"}), edit | {"input": {"path": "b.py"}})
    function = create_compact_function(summarize, bounds=TINY, form=SummaryForm(lists_files=True))
    result = async_to_sync(function)(history)
    assert result is not None
    assert result.summary == (
        "Done so far.\n\n<read-files>\na.py\nd.py\n</read-files>\n\n<modified-files>\nb.py\nc.py\n</modified-files>"
    )
    assert "<previous_summary>\nBefore.\n</previous_summary>" in prompts[0]
    assert "a.py" not in prompts[0]


def test_a_summary_of_nothing_but_lists_is_blank() -> None:
    async def summarize(_prompt: str) -> str:
        return "<read-files>\na.py\n</read-files>"

    form = SummaryForm(lists_files=True)
    with pytest.raises(CompactionFailed):
        async_to_sync(create_compact_function(summarize, bounds=TINY, form=form))(many(10))


def test_overlays_are_read_from_the_leaf_upwards() -> None:
    path = [f"m{n}" for n in range(8)]
    older = Overlay(id="1", first_id="m1", last_id="m3")
    same_end = Overlay(id="2", first_id="m2", last_id="m3")
    longer = Overlay(id="3", first_id="m1", last_id="m5")
    other_branch = Overlay(id="4", first_id="m1", last_id="x")
    assert overlaid(path, []) == path
    assert overlaid(path, [older]) == ["m0", older, "m4", "m5", "m6", "m7"]
    assert overlaid(path, [older, same_end]) == ["m0", "m1", same_end, "m4", "m5", "m6", "m7"]
    assert overlaid(path, [older, longer]) == ["m0", longer, "m6", "m7"]
    assert overlaid(path, [other_branch, Overlay(id="5", first_id="m3", last_id="m1")]) == path
    assert overlaid(path, [Overlay(id="6", first_id="m0", last_id="m7")])[0] != "m0"


def test_a_new_range_grows_over_the_summaries_before_it() -> None:
    former = summary_message(Overlay(id="x", first_id="m1", last_id="m5", summary="former"))
    history = [*many(1), former, *many(9)[6:]]
    found = stored_range(history, CompactionResult(first_id="m6", last_id="m8", summary="s"))
    assert found is not None
    assert (found.first_id, found.last_id, found.start, found.end) == ("m1", "m8", 1, 5)
    assert stored_range(history, CompactionResult(first_id="m8", last_id="m6", summary="s")) is None
    assert stored_range(history, CompactionResult(first_id="m6", last_id="m99", summary="s")) is None


def test_what_is_beyond_reach_is_covered_as_well() -> None:
    history = [beyond_reach("first", "last"), *many(10)]
    plan = plan_compaction(history, TINY)
    assert plan is not None
    assert plan.previous == ""
    found = stored_range(history, CompactionResult(first_id=plan.first_id, last_id=plan.last_id, summary="s"))
    assert found is not None
    assert (found.first_id, found.last_id) == ("first", "m7")


def test_a_long_stretch_is_summarised_piece_by_piece() -> None:
    prompts: list[str] = []

    async def summarize(prompt: str) -> str:
        prompts.append(prompt)
        return f"summary {len(prompts)}"

    history = said(*[f"{n} " + "word " * 40 for n in range(10)])
    function = create_compact_function(summarize, bounds=TINY, max_input_tokens=120)
    result = async_to_sync(function)(history)
    assert result is not None
    assert (result.first_id, result.last_id, result.summary) == ("m3", "m7", f"summary {len(prompts)}")
    assert len(prompts) == 3
    assert "summary 1" in prompts[1]
    assert all(f"{n} word" in "".join(prompts) for n in range(3, 8))
    assert len(pieces(history, 1, estimate_text)) == len(history)


def test_a_blank_summary_is_a_failure() -> None:
    async def summarize(_prompt: str) -> str:
        return "<think>what to say</think>\n \n"

    with pytest.raises(CompactionFailed):
        async_to_sync(create_compact_function(summarize, bounds=TINY))(many(10))


def test_sanitize_tool_pairs() -> None:
    messages = [
        text_message("user", "hi", "u"),
        with_parts(
            "a", {"type": "step-start"}, call("open", input={}), done("fine", input={}), call("later", input={})
        ),
        with_parts("orphan", done("nobody")),
        with_parts("b", {"type": "text", "text": "t"}, done("later")),
    ]
    sane = sanitize_tool_pairs(messages)
    assert [message["id"] for message in sane] == ["u", "a", "b"]
    assert [(p["toolCallId"], p["state"], p["output"]) for p in sane[1]["parts"][1:]] == [
        ("open", "output-available", STUB_TEXT),
        ("fine", "output-available", "done"),
        ("later", "output-available", "done"),
    ]
    assert [part["type"] for part in sane[2]["parts"]] == ["text"]
    assert sanitize_tool_pairs(sane) == sane


def test_failed_and_denied_calls_are_pairs_already() -> None:
    failed = call("c1", "output-error", input={}, errorText="no")
    denied = call("c2", "output-denied", input={})
    assert sanitize_tool_pairs([with_parts("a", failed, denied)]) == [with_parts("a", failed, denied)]
