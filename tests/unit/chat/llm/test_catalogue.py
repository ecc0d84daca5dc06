"""The facts of a model: the settings before the product's list, each fact by the longest name that says it."""

from decimal import Decimal
from typing import Any

import pytest

from chat.core.model.catalogue import CATALOGUE, LENGTH, SAMPLING
from chat.llm.catalogue import facts_problem, known_model
from chat.llm.registry import name_of, replaced_models
from chat.llm.scripted import ScriptedModel


@pytest.mark.parametrize(
    ("name", "title", "efforts", "parameters", "inputs"),
    [
        ("openai/gpt-5", "GPT-5", ("minimal", "low", "medium", "high"), LENGTH, ("image", "document")),
        ("openai/gpt-5-mini-2025-08-07", "GPT-5 mini", ("minimal", "low", "medium", "high"), LENGTH, None),
        ("openai/gpt-5-chat-latest", "GPT-5 chat", (), SAMPLING, None),
        ("openai/gpt-4o-mini", "GPT-4o mini", (), SAMPLING, None),
        ("openrouter/openai/o3", "o3", ("low", "medium", "high"), LENGTH, None),
        ("openai/gpt-5.1", "gpt-5.1", ("none", "low", "medium", "high"), LENGTH, None),
        ("ollama/gpt-oss:20b", "gpt-oss:20b", ("low", "medium", "high"), SAMPLING, ()),
        ("acme/new", "new", (), SAMPLING, None),
        ("", "", (), SAMPLING, None),
    ],
)
def test_facts_by_name(
    name: str, title: str, efforts: tuple[str, ...], parameters: tuple[str, ...], inputs: tuple[str, ...] | None
) -> None:
    known = known_model(name)
    assert (known.title, known.reasoning_efforts, known.parameters) == (title, efforts, parameters)
    assert inputs is None or known.inputs == inputs


def test_limits_and_prices_come_from_where_turns_take_them(settings: Any) -> None:
    settings.THINK_MODEL_LIMITS = {"acme/": {"context": 9_000}}
    settings.THINK_PRICES = {"acme/m": {"input": 1, "output": 2}}
    known = known_model("acme/m")
    assert (known.limits.context_tokens, known.limits.output_tokens) == (9_000, 0)  # no guess is passed on as a fact
    assert known.price is not None
    assert known.price.output == Decimal(2)
    assert known_model("openai/gpt-5").limits == CATALOGUE["gpt-5"].limits
    assert known_model("ollama/m", ("ollama/m", 4_096)).limits.context_tokens == 4_096


def test_settings_go_before_the_list(settings: Any) -> None:
    settings.THINK_MODEL_FACTS = {
        "openai/": {"reasoning_efforts": ["low"], "inputs": ["image"]},
        "openai/gpt-5": {"title": "Ours", "parameters": ["top_p"], "reasoning_efforts": []},
        "broken/": {"parameters": "top_p"},
    }
    known = known_model("openai/gpt-5")
    assert (known.title, known.reasoning_efforts, known.parameters) == ("Ours", (), ("top_p",))
    assert known.inputs == ("image",)
    assert known_model("openai/gpt-4.1").reasoning_efforts == ("low",)
    assert known_model("broken/m").parameters == SAMPLING


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({}, ""),
        ({"title": "M", "reasoning_efforts": ["low"], "parameters": ["top_p"], "inputs": ["image"]}, ""),
        ([], "an entry is an object with at most title, reasoning_efforts, parameters, inputs"),
        ({"price": 1}, "an entry is an object with at most title, reasoning_efforts, parameters, inputs"),
        ({"title": 1}, "title is a text"),
        ({"reasoning_efforts": "low"}, "reasoning_efforts is a list of texts"),
        ({"parameters": ["seed"]}, "parameters is a list of temperature, top_p, max_output_tokens"),
        ({"inputs": ["smell"]}, "inputs is a list of image, document"),
    ],
)
def test_facts_that_cannot_be_read_are_explained(entry: Any, problem: str) -> None:
    assert facts_problem(entry) == problem


def test_the_name_of_a_model_without_making_it(settings: Any) -> None:
    settings.THINK_MODEL = "openai/gpt-5"
    assert name_of("default") == name_of("") == "openai/gpt-5"
    assert name_of(" acme/m ") == "acme/m"
    assert name_of(ScriptedModel(name="scripted/x")) == "scripted/x"
    with replaced_models(ScriptedModel(name="scripted/y")):
        assert name_of("default") == "scripted/y"
