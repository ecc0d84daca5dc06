"""Questions to people about calls: the tool's own words, and which arguments the answer may change."""

from dataclasses import replace
from typing import Any

import pytest

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.questions import Question, checked_edit, fill_in, question_of, title_of
from tools_app.core.tool import client_tool, tool
from tools_app.errors import EditInvalid, ToolDeclarationInvalid


@tool(
    title="Refund",
    needs_approval=True,
    approval_text="Refund {amount:.2f} {currency} for order {order}?",
    editable=("amount", "note"),
)
def refund(order: str, amount: float, currency: str = "EUR", note: str = "") -> str:
    """Give money back. Written for the model."""
    return f"{order} {amount} {currency} {note}"


QUESTION = Question(title="Refund", may_edit=("amount", "note"), input_schema=refund.input_schema)
ASKED: JSONObject = {"order": "A-1", "amount": 5.0}


def test_a_tool_keeps_what_is_for_people_apart_from_what_is_for_models() -> None:
    assert (refund.name, refund.title, refund.editable) == ("refund", "Refund", ("amount", "note"))
    assert refund.description == "Give money back. Written for the model."
    assert "title" not in refund.input_schema


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"order": "A-1", "amount": 5}, "Refund 5.00 EUR for order A-1?"),
        ({"order": "A-1", "amount": 5, "currency": "USD"}, "Refund 5.00 USD for order A-1?"),
        ({"order": "two\nlines", "amount": "much"}, "Refund much EUR for order two lines?"),
        ({"order": "{amount} {x.__class__}", "amount": 1}, "Refund 1.00 EUR for order {amount} {x.__class__}?"),
        ({"order": ["a", 1], "amount": None}, 'Refund EUR for order ["a",1]?'),
    ],
)
def test_the_sentence_has_the_arguments_of_the_call(arguments: JSONObject, sentence: str) -> None:
    assert isinstance(refund.approval_text, str)
    assert fill_in(refund.approval_text, arguments, refund.input_schema) == sentence


def test_a_sentence_is_bounded() -> None:
    text = fill_in("Send {text} to {text}?", {"text": "x" * 10_000}, {"properties": {"text": {}}})
    assert len(text) < 500
    assert text.endswith("…?")
    assert len(fill_in("{a}" * 9, {"a": "y" * 190}, {"properties": {"a": {}}})) == 500


@pytest.mark.parametrize(
    "options",
    [
        {"approval_text": "Refund {sum}?"},
        {"approval_text": "Refund {amount.__class__}?"},
        {"approval_text": "Refund {amount[0]}?"},
        {"approval_text": "Refund {amount!r}?"},
        {"approval_text": "Refund {amount:{amount}}?"},
        {"approval_text": "Refund {}?"},
        {"approval_text": "Refund {amount?"},
        {"editable": ("sum",)},
        {"title": "two\nlines"},
        {"title": "x" * 81},
    ],
)
def test_a_mistake_in_the_declaration_fails_at_import(options: Any) -> None:
    def pay(amount: float) -> str:
        """Pay."""
        return str(amount)

    with pytest.raises(ToolDeclarationInvalid, match="Tool 'pay'"):
        tool(**options)(pay)


def test_a_client_tool_has_a_title() -> None:
    assert client_tool("locate", title="Your position").title == "Your position"
    with pytest.raises(ToolDeclarationInvalid):
        client_tool("locate", title=" ")


@pytest.mark.parametrize(
    ("name", "title", "shown"),
    [("order_status", "", "Order status"), ("order-status", "Where is it", "Where is it"), ("x", "", "X")],
)
def test_a_tool_has_a_name_for_people(name: str, title: str, shown: str) -> None:
    assert title_of(name, title) == shown


@pytest.mark.parametrize("may_edit", [True, False, ("amount",)])
def test_a_question_is_stored_and_read(may_edit: bool | tuple[str, ...]) -> None:
    question = Question(title="Refund", sentence="Refund it?", may_edit=may_edit, input_schema={"type": "object"})
    assert question_of(question.to_json()) == question
    names = list(may_edit) if isinstance(may_edit, tuple) else may_edit
    assert question.for_clients() == {"title": "Refund", "sentence": "Refund it?", "mayEdit": names}
    assert replace(question, lasting=True).for_clients()["lasting"] is True
    assert question_of(replace(question, lasting=True).to_json()).lasting


def test_a_call_of_an_earlier_version_has_a_question_without_words() -> None:
    assert question_of(None) == Question()


def test_permitted_arguments_may_be_changed() -> None:
    assert checked_edit(QUESTION, ASKED, {**ASKED, "amount": 4}) == {"order": "A-1", "amount": 4}
    assert checked_edit(QUESTION, ASKED, {**ASKED, "note": "sorry"}) == {**ASKED, "note": "sorry"}
    free = Question(may_edit=True, input_schema=refund.input_schema)
    assert checked_edit(free, ASKED, {"order": "B", "amount": 1}) == {"order": "B", "amount": 1}


def test_the_same_arguments_are_no_change() -> None:
    assert checked_edit(Question(), ASKED, dict(reversed(ASKED.items()))) is None


@pytest.mark.parametrize(
    ("question", "edited", "problem"),
    [
        (QUESTION, {"order": "A-2", "amount": 5.0}, "order: may not be changed"),
        (QUESTION, {"amount": 5.0}, "order: may not be changed"),
        (QUESTION, {**ASKED, "extra": 1}, "extra: may not be changed"),
        (Question(), {**ASKED, "amount": 4}, "amount: may not be changed"),
        (QUESTION, {**ASKED, "amount": "much"}, "amount: "),
        (Question(may_edit=True, input_schema=refund.input_schema), {"amount": 1}, "the value: "),
        (Question(may_edit=True, input_schema=refund.input_schema), {**ASKED, "extra": 1}, "the value: "),
    ],
)
def test_other_changes_are_refused_by_name(question: Question, edited: JSONObject, problem: str) -> None:
    with pytest.raises(EditInvalid) as refused:
        checked_edit(question, ASKED, edited)
    problems = refused.value.data["problems"]
    assert isinstance(problems, list)
    assert any(str(line).startswith(problem) for line in problems)
