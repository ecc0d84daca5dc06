"""The shape of a choice, and which model takes it."""

from typing import Any

import pytest

from chat.core.model.chosen_model import (
    NOTHING,
    ChosenModel,
    Takes,
    check_parameters,
    read_choice,
    refused_fields,
    stored_choice,
)
from chat.core.model.language_model import ModelSettings
from chat.errors import ModelChoiceInvalid

EVERYTHING = ChosenModel(model="a/b", reasoning_effort="low", temperature=0.5, top_p=1.0, max_output_tokens=10)


def test_a_choice_there_and_back() -> None:
    stored = EVERYTHING.to_json()
    assert stored is not None
    assert read_choice(stored) == EVERYTHING
    assert read_choice({"temperature": 0}) == ChosenModel(temperature=0.0)
    assert read_choice({"max_output_tokens": 5.0}) == ChosenModel(max_output_tokens=5)  # JSON has one kind of number


@pytest.mark.parametrize("value", [None, {}, {"model": None}, dict.fromkeys(EVERYTHING.to_json() or {})])
def test_a_choice_of_nothing_is_none(value: Any) -> None:
    assert read_choice(value) == NOTHING
    assert read_choice(value).to_json() is None


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ([], "model_choice"),
        (True, "model_choice"),
        ({"other": 1}, "other"),
        ({"model": 1}, "model"),
        ({"model": ""}, "model"),
        ({"model": "a/b\n"}, "model"),
        ({"model": "x" * 201}, "model"),
        ({"reasoning_effort": "x" * 33}, "reasoning_effort"),
        ({"temperature": True}, "temperature"),
        ({"temperature": "1"}, "temperature"),
        ({"temperature": 2.01}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"top_p": 1.01}, "top_p"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"max_output_tokens": True}, "max_output_tokens"),
        ({"max_output_tokens": 1.5}, "max_output_tokens"),
        ({"max_output_tokens": 10_000_001}, "max_output_tokens"),
    ],
)
def test_what_is_wrong_is_named(value: Any, field: str) -> None:
    with pytest.raises(ModelChoiceInvalid) as caught:
        read_choice(value)
    assert caught.value.data["field"] == field
    assert stored_choice(value) == NOTHING


@pytest.mark.parametrize(
    ("takes", "refused"),
    [
        (Takes(), ["reasoning_effort", "temperature", "top_p", "max_output_tokens"]),
        (Takes(reasoning_efforts=("low",), parameters=("temperature", "top_p", "max_output_tokens")), []),
        (Takes(parameters=("temperature", "top_p", "max_output_tokens"), max_output_tokens=10), ["reasoning_effort"]),
        (
            Takes(reasoning_efforts=("low",), parameters=("max_output_tokens",), max_output_tokens=9),
            ["temperature", "top_p", "max_output_tokens"],
        ),
    ],
)
def test_a_model_takes_what_it_is_known_to_take(takes: Takes, refused: list[str]) -> None:
    assert refused_fields(EVERYTHING, takes) == refused
    assert refused_fields(EVERYTHING.without(refused), takes) == []
    if refused:
        with pytest.raises(ModelChoiceInvalid, match="a/b"):
            check_parameters(EVERYTHING, "a/b", takes)


@pytest.mark.parametrize(
    ("choice", "takes", "text", "allowed"),
    [
        (
            ChosenModel(reasoning_effort="huge"),
            Takes(reasoning_efforts=("low", "high")),
            "M does not know the reasoning effort 'huge'; it knows low, high.",
            ["low", "high"],
        ),
        (
            ChosenModel(reasoning_effort="huge"),
            Takes(),
            "M does not know the reasoning effort 'huge'; none can be chosen for it.",
            [],
        ),
        (ChosenModel(top_p=0.5), Takes(), "M does not take top_p.", []),
        (
            ChosenModel(max_output_tokens=50),
            Takes(parameters=("max_output_tokens",), max_output_tokens=40),
            "An answer of M has at most 40 tokens.",
            [1, 40],
        ),
    ],
)
def test_a_refusal_says_what_is_possible(choice: ChosenModel, takes: Takes, text: str, allowed: list[Any]) -> None:
    with pytest.raises(ModelChoiceInvalid) as caught:
        check_parameters(choice, "M", takes)
    assert caught.value.message == text
    assert caught.value.data["allowed"] == allowed


def test_parameters_as_requests_take_them() -> None:
    assert EVERYTHING.settings == ModelSettings(
        reasoning_effort="low", temperature=0.5, top_p=1.0, max_output_tokens=10
    )
    assert EVERYTHING.has_parameters
    assert not ChosenModel(model="a/b").has_parameters


def test_settings_over_others_keep_what_they_say() -> None:
    own = ModelSettings(temperature=1.0, stop_sequences=("END",), extra={"a": 1})
    below = ModelSettings(temperature=0.5, top_p=0.5, stop_sequences=("X",), extra={"b": 2}, max_retries=0)
    assert own.over(below) == ModelSettings(
        temperature=1.0, top_p=0.5, stop_sequences=("END",), extra={"a": 1}, max_retries=0
    )
