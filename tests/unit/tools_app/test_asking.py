"""Whether a person must approve a call, and in which words, when what its author wrote fails."""

import asyncio
from typing import Any

import pytest

from fibers.errors import LeaseLost
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.calls.asking import judge_call, question_for, refusal_of
from tools_app.core.inner_calls import MAX_ID_CHARS, inner_call_id, inner_prefix
from tools_app.core.tool import AnyRule, Tool, ToolContext, tool
from tools_app.core.tool_calls import ToolCall
from tools_app.errors import ToolError

CALL = ToolCall(call_id="c", tool_name="pay", input={"amount": 5})
CONTEXT = ToolContext(
    call_id="c",
    tool_name="pay",
    user_id=None,
    agent="a",
    instance_name="n",
    turn_id="t",
    attempt=1,
    idempotency_key="t:c",
)


def pay_tool(**options: Any) -> Tool:
    @tool(timeout_seconds=0.05, **options)
    def pay(amount: int) -> int:
        """Pay."""
        return amount

    return pay


async def never(arguments: JSONObject, context: ToolContext) -> bool:
    await asyncio.Event().wait()
    return False


def fails(*_arguments: Any) -> Any:
    raise RuntimeError("no idea")


def lost(*_arguments: Any) -> Any:
    raise LeaseLost


def is_large(arguments: JSONObject, _context: ToolContext) -> bool:
    return bool(arguments["amount"] > 3)


def is_no(_arguments: JSONObject, _context: ToolContext) -> bool:
    return False


@pytest.mark.parametrize(
    ("rule", "asks"),
    [
        (True, True),
        (False, False),
        (is_large, True),
        (is_no, False),
        (AnyRule((is_no, is_large)), True),
        (AnyRule((is_no, is_no)), False),
        (fails, True),
        (never, True),
        (AnyRule((is_no, fails)), True),
    ],
)
async def test_a_rule_that_cannot_say_leaves_it_to_the_person(rule: Any, asks: bool) -> None:
    judged = await judge_call(pay_tool(needs_approval=rule), CALL, CONTEXT)
    assert (judged.must_ask, judged.denied) == (asks, None)


async def test_a_lost_lease_is_no_answer() -> None:
    with pytest.raises(LeaseLost):
        await judge_call(pay_tool(needs_approval=lost), CALL, CONTEXT)
    with pytest.raises(LeaseLost):
        await question_for(pay_tool(approval_text=lost), CALL)


@pytest.mark.parametrize(
    ("text", "sentence"), [("Pay {amount}?", "Pay 5?"), (lambda given: f"Pay\n{given['amount']}", "Pay 5"), (fails, "")]
)
async def test_words_that_fail_are_left_to_the_page(text: Any, sentence: str) -> None:
    question = await question_for(pay_tool(approval_text=text, editable=True, title="Payment"), CALL)
    assert (question.sentence, question.title, question.may_edit) == (sentence, "Payment", True)
    assert question.input_schema is not None


def test_ids_of_calls_within_a_call_are_short_and_their_own() -> None:
    assert inner_call_id("one", 2) == "one:2"
    long = ["x" * 127 + letter for letter in "ab"]
    ids = {inner_call_id(outer, ordinal) for outer in long for ordinal in (1, 10_000)}
    assert len(ids) == 4
    assert all(len(call_id) <= MAX_ID_CHARS - len("approval:") for call_id in ids)
    assert all(inner_call_id(outer, 7).startswith(inner_prefix(outer)) for outer in long)


def too_much(arguments: JSONObject, context: ToolContext) -> None:
    if arguments["amount"] > 4:
        raise ToolError(f"Only 4 are left for {context.agent}.")


async def broke(arguments: JSONObject, context: ToolContext) -> None:
    raise KeyError("a defect of the check")


@pytest.mark.parametrize(
    ("check", "refusal"),
    [(None, ""), (too_much, "Only 4 are left for a."), (broke, "'a defect of the check'"), (never, "")],
)
async def test_a_check_says_why_a_call_would_fail(check: Any, refusal: str) -> None:
    assert await refusal_of(pay_tool(needs_approval=True, check=check), CALL, CONTEXT) == refusal
