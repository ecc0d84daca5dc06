"""What `@action` declares, and what it refuses."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from chat.think import Tool, ToolContext, Undo, action, compensation
from tools_app.actions.compensation import find_compensation
from tools_app.actions.run_action import safe_output
from tools_app.calls.run import execute
from tools_app.core.action_rules import MAX_PAUSE_SECONDS, checked_key, error_output, key_of_arguments
from tools_app.core.tool_calls import ToolCall, ToolResult
from tools_app.errors import ToolDeclarationInvalid, ToolError, ToolInputInvalid


def refund(order: str, amount: float, context: ToolContext) -> str:
    """Refund an order."""
    return f"{order} {amount} {context.attempt}"


CONTEXT = ToolContext(
    call_id="c1",
    tool_name="refund",
    user_id=1,
    agent="shop",
    instance_name="room",
    turn_id="t1",
    attempt=1,
    idempotency_key="t1:c1",
)


def test_an_action_is_a_tool_with_the_schema_of_its_function() -> None:
    made = action(refund)
    assert isinstance(made, Tool)
    assert (made.name, made.description) == ("refund", "Refund an order.")
    assert set(made.input_schema["properties"]) == {"order", "amount"}
    assert made.action is not None
    assert made.action.timeout_seconds == 30
    assert (made.needs_approval, made.action.pause_seconds, made.action.key) == (False, None, None)


def test_the_options_of_an_action() -> None:
    made = action(
        name="pay_back",
        description="Pay back.",
        title="Refund",
        key=("order", "amount"),
        permissions=["shop.refund_order"],
        approval=True,
        summary="Refund {amount:.2f}?",
        risk="high",
        timeout_seconds=5,
        undo="cancel",
        editable=("amount",),
    )(refund)
    rules = made.action
    assert rules is not None
    assert (made.name, made.title, made.needs_approval, made.editable) == ("pay_back", "Refund", True, ("amount",))
    assert (rules.name, rules.key, rules.permissions) == ("pay_back", ("order", "amount"), ("shop.refund_order",))
    assert (rules.risk, rules.timeout_seconds, rules.undo) == ("high", 5, "cancel")


@pytest.mark.parametrize(("pause", "seconds"), [(True, MAX_PAUSE_SECONDS), (60, 60.0), (False, None)])
def test_a_pause_asks_a_person_for_as_long_as_it_says(pause: Any, seconds: float | None) -> None:
    made = action(pause=pause)(refund)
    assert made.action is not None
    assert made.action.pause_seconds == seconds
    assert made.needs_approval is (seconds is not None)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"key": "order_id"}, "key"),
        ({"key": ()}, "key"),
        ({"risk": "huge"}, "risk"),
        ({"pause": MAX_PAUSE_SECONDS + 1}, "30 days"),
        ({"pause": 0}, "pause"),
        ({"permissions": ("", "x")}, "permissions"),
        ({"summary": "Refund {nothing}?"}, "approval_text"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"undo": refund}, "compensation"),
    ],
)
def test_a_wrong_option_is_refused_at_import(options: dict[str, Any], word: str) -> None:
    with pytest.raises(ToolDeclarationInvalid) as refused:
        action(**options)(refund)
    assert word in refused.value.message


def test_an_action_yields_nothing() -> None:
    async def steps() -> AsyncIterator[int]:
        """Count."""
        yield 1

    with pytest.raises(ToolDeclarationInvalid):
        action(steps)


def test_an_action_is_called_as_its_function() -> None:
    assert action(refund)("A-1", 2.0, CONTEXT) == "A-1 2.0 1"


async def test_no_runner_reaches_the_function_without_the_ledger() -> None:
    call = ToolCall(call_id="c1", tool_name="refund", input={"order": "A-1", "amount": 1})
    [result] = [item async for item in execute(action(refund), call, CONTEXT)]
    assert isinstance(result, ToolResult)
    assert (result.is_error, result.output) == (True, "An action runs within a turn only.")


def test_nothing_is_attached_outside_of_a_turn() -> None:
    with pytest.raises(ToolError):
        CONTEXT.attach_reply({"type": "data-card", "data": 1})


def test_keys_of_arguments() -> None:
    arguments = {"order": "A-1", "amount": 5}
    assert key_of_arguments("order", arguments) == "A-1"
    assert key_of_arguments("amount", arguments) == "5"
    assert key_of_arguments(("order", "amount"), arguments) == '["A-1",5]'
    assert key_of_arguments(("order", "amount"), {**arguments, "order": 'A-1",5'}) != '["A-1",5]'


def test_a_long_key_is_kept_by_its_hash_and_an_empty_one_is_refused() -> None:
    one, other = checked_key("x" * 1000), checked_key("x" * 999)
    assert one != other
    assert len(one) < 100
    with pytest.raises(ToolInputInvalid):
        checked_key(" ")


def test_the_output_of_an_effect_always_has_a_form() -> None:
    assert safe_output({"a": [1, None]}) == {"a": [1, None]}
    assert "object at" in str(safe_output(object()))
    assert safe_output(float("nan")) == "nan"
    long = safe_output("x" * 30_000 + " exit 1")
    assert isinstance(long, str)
    assert long.endswith("x exit 1")
    assert long.count("characters truncated") == 1
    assert safe_output(long) == long
    cut = safe_output(["x" * 30_000])
    assert isinstance(cut, str)
    assert len(cut) <= 20_000


def test_an_error_is_a_result() -> None:
    assert error_output("ActionPending", "wait") == {"error": {"name": "ActionPending", "message": "wait"}}


def test_compensations_are_found_by_name_and_named_once() -> None:
    @compensation(name="unit_cancel")
    def cancel(undo: Undo) -> str:
        return undo.action

    assert find_compensation("unit_cancel") is cancel
    made = action(undo=cancel)(refund)
    assert made.action is not None
    assert made.action.undo == "unit_cancel"
    with pytest.raises(ToolDeclarationInvalid):
        compensation(name="unit_cancel")(refund)
    assert find_compensation("nobody") is None
