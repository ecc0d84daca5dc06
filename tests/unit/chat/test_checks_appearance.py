"""Agents whose title, icon or suggestions the page cannot show, and models that nothing answers for, are reported."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils.translation import gettext_lazy

from chat.agent import declared
from chat.agent.appearance import ICONS, appearance_of
from chat.checks import check_appearance, check_models
from chat.think import Think

ROOT = Path(__file__).resolve().parents[3]
Define = Callable[..., type[Think]]


@pytest.fixture
def define() -> Iterator[Define]:
    made: list[type[Think]] = []

    def define(doc: str = "", **attributes: Any) -> type[Think]:
        made.append(type("CheckedAgent", (Think,), {"__doc__": doc, **attributes}))
        return made[-1]

    yield define
    for agent_class in made:
        declared.unregister(agent_class)


def found(agent_class: type[Think]) -> list[str]:
    return [
        f"{problem.id} {problem.msg.partition(': ')[2]}"
        for check in (check_appearance, check_models)
        for problem in check()
        if agent_class.__qualname__ in problem.msg
    ]


def test_every_symbol_is_in_the_page() -> None:
    sprite = (ROOT / "templates" / "chat" / "icons.svg").read_text(encoding="utf-8")
    assert set(ICONS) <= set(re.findall(r'id="i-([\w-]+)"', sprite))


def test_a_class_that_declares_nothing_looks_like_its_name(define: Define) -> None:
    shown = appearance_of(define("Checks agents.\n\nAnd more."))
    assert (shown.name, shown.title, shown.description) == ("checked-agent", "Checked agent", "Checks agents.")
    assert (shown.icon, shown.suggestions, shown.is_listed) == ("chat", (), True)


def test_what_is_declared_is_shown(define: Define) -> None:
    agent_class = define(
        title=gettext_lazy("Desk"),
        description="  Answers\tcustomers. ",
        icon="people",
        suggestions=("Where is my parcel?", gettext_lazy("Yes")),
        models=("openai/gpt-5", "default"),
    )
    shown = appearance_of(agent_class)
    assert (shown.title, shown.description, shown.icon) == ("Desk", "Answers customers.", "people")
    assert shown.suggestions == ("Where is my parcel?", "Yes")
    assert found(agent_class) == []


def test_a_static_file_of_the_site_is_an_icon(define: Define, settings: Any, tmp_path: Path) -> None:
    (tmp_path / "support").mkdir()
    (tmp_path / "support" / "agent.svg").write_text("<svg/>", encoding="utf-8")
    settings.STATICFILES_DIRS = [tmp_path]
    assert found(define(icon="support/agent.svg")) == []
    assert found(define(icon="support/other.svg")) == [
        "chat.E008 icon names the static file 'support/other.svg', which no app and no folder of static files has."
    ]


@pytest.mark.parametrize("icon", ["\N{ROBOT FACE}", "robot", "/etc/a.svg", "../a.svg", "https://x.example/a.svg", 3])
def test_an_unknown_icon_is_reported(define: Define, icon: Any) -> None:
    [problem] = found(define(icon=icon))
    assert problem.startswith("chat.E008 icon must be one of chat, book, ")
    assert problem.endswith(f"or the path of a static file, not {icon!r}.")


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        ({"title": "x" * 61}, f"title must be one line of 0 to 60 characters, not {'x' * 60!r} (61)."),
        ({"title": "a\nb"}, "title must be one line of 0 to 60 characters, not 'a\\nb' (3)."),
        ({"description": "x" * 201}, f"description must be one line of 0 to 200 characters, not {'x' * 200!r} (201)."),
        ({"suggestions": "Hello"}, "suggestions must be a tuple of texts, not 'Hello'."),
        ({"suggestions": ("a",) * 7}, "suggestions must be at most 6, not 7."),
        (
            {"suggestions": ("a", "x" * 121)},
            f"a suggestion must be one line of 1 to 120 characters, not {'x' * 120!r} (121).",
        ),
        ({"listed": "no"}, "listed must be True or False, not 'no'."),
        ({"suggestions": (" ",)}, "a suggestion must be one line of 1 to 120 characters, not '' (0)."),
    ],
)
def test_what_the_page_cannot_show_is_reported(define: Define, attributes: dict[str, Any], problem: str) -> None:
    assert found(define(**attributes)) == [f"chat.E008 {problem}"]


def test_a_title_that_is_a_method_is_reported(define: Define) -> None:
    agent_class = define(title=classmethod(lambda _cls: "Desk"))
    [problem] = found(agent_class)
    assert problem.startswith("chat.E008 title is a text now, and no method: write title = ...")
    assert appearance_of(agent_class).title == "Checked agent"


@pytest.mark.parametrize(
    ("models", "problem"),
    [
        ("openai/gpt-5", "models: a list of names is expected, not 'openai/gpt-5'."),
        (("gpt-5",), "models: 'gpt-5' is not provider/model."),
        (("openai/",), "models: 'openai/' is not provider/model."),
        ((7,), "models: 7 is not provider/model."),
    ],
)
def test_models_that_cannot_be_offered_are_reported(define: Define, models: Any, problem: str) -> None:
    assert found(define(models=models)) == [f"chat.E009 {problem}"]


def test_models_of_the_site_are_checked(settings: Any) -> None:
    settings.THINK_MODELS = ["openai/gpt-5", "default", "gpt-5"]
    settings.THINK_MODEL_FACTS = {"acme/": {"voice": "alto"}}
    assert [problem.msg for problem in check_models()] == [
        "THINK_MODELS: 'gpt-5' is not provider/model.",
        "THINK_MODEL_FACTS: 'acme/': an entry is an object with at most title, reasoning_efforts, parameters, inputs.",
    ]
