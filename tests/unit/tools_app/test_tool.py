"""Tools as a developer writes them: schema, validation, declaration errors."""

from enum import Enum
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from tools_app.actions.action import action
from tools_app.core.call_check import check_call, to_json
from tools_app.core.tool import ToolContext, tool
from tools_app.core.toolset import Toolset, named_tools
from tools_app.errors import ToolDeclarationInvalid, ToolInputInvalid


class Place(BaseModel):
    """A place."""

    city: str
    title: str = "x"


@tool
def weather(place: Place, unit: Literal["c", "f"] = "c", days: Annotated[int, Field(ge=1, le=7)] = 1) -> str:
    """Tell the weather.

    For a place and some days.

    Args:
        place: Where.
        unit: Which unit.
    """
    return f"{place.city} {unit} {days}"


def test_the_schema_comes_from_signature_and_docstring() -> None:
    assert weather.name == "weather"
    assert weather.description == "Tell the weather.\n\nFor a place and some days."
    properties = weather.input_schema["properties"]
    assert properties["unit"]["enum"] == ["c", "f"]
    assert properties["unit"]["description"] == "Which unit."
    assert properties["days"]["maximum"] == 7
    assert weather.input_schema["required"] == ["place"]
    assert weather.input_schema["additionalProperties"] is False


def test_a_property_called_title_stays() -> None:
    assert "title" in weather.input_schema["$defs"]["Place"]["properties"]
    assert "title" not in weather.input_schema


def test_arguments_arrive_as_python_values() -> None:
    arguments = weather.parse({"place": {"city": "Rome"}, "days": 2})
    assert weather(**arguments) == "Rome c 2"


@pytest.mark.parametrize("value", [{}, {"place": {"city": "x"}, "days": 9}, {"place": {"city": "x"}, "extra": 1}])
def test_wrong_input_names_the_field(value: dict[str, object]) -> None:
    with pytest.raises(ToolInputInvalid, match=r"- (place|days|extra):"):
        weather.parse(value)


def test_the_context_is_hidden_from_the_model() -> None:
    @tool
    def whoami(context: ToolContext) -> int | None:
        """Say who."""
        return context.user_id

    assert whoami.context_parameter == "context"
    assert whoami.input_schema["properties"] == {}


def test_a_parameter_without_annotation_is_refused() -> None:
    with pytest.raises(ToolDeclarationInvalid, match="'x' needs a type annotation"):

        @tool
        def bad(x) -> None:  # type: ignore[no-untyped-def]  # what is refused
            """Bad."""


def test_variadic_parameters_are_refused() -> None:
    with pytest.raises(ToolDeclarationInvalid, match="'rest'"):

        @tool
        def bad(*rest: int) -> None:
            """Bad."""


def test_a_name_that_providers_refuse_is_refused() -> None:
    with pytest.raises(ToolDeclarationInvalid, match="not a tool name"):
        tool(name="two words")(lambda: None)


def test_later_sources_win_and_mappings_rename() -> None:
    @tool(name="weather")
    def mine() -> str:
        """Mine."""
        return "mine"

    assert Toolset([weather], [mine]).get("weather") is mine
    assert [t.name for t in Toolset({"sun": weather})] == ["sun"]


def test_the_active_tools_limit() -> None:
    assert len(Toolset([weather]).only(["other"])) == 0
    assert len(Toolset([weather]).only(None)) == 1


def test_no_arguments_mean_an_empty_object() -> None:
    assert check_call(Toolset([weather]), "weather", "  ").error is not None
    assert check_call(Toolset([weather]), "weather", '{"place":{"city":"Oslo"}}').error is None


class Colour(Enum):
    RED = "red"


def test_results_become_json() -> None:
    assert to_json({"c": Colour.RED, "p": Place(city="x"), "s": {1}}) == {
        "c": "red",
        "p": {"city": "x", "title": "x"},
        "s": [1],
    }


@pytest.mark.parametrize("value", [object(), float("nan"), b"bytes"])
def test_what_json_cannot_carry_is_refused(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        to_json(value)


def test_a_cycle_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="nested"):
        to_json(loop)


class Desk:
    """Has tools in its body."""

    name = "front"

    @tool
    def where(self) -> str:
        """Say where."""
        return self.name

    @tool(name="where_soon")
    async def soon(self, loud: bool) -> str:
        """Say where, soon."""
        return self.name.upper() if loud else self.name

    @tool
    def plain() -> str:
        """Take no object."""
        return "plain"


async def test_a_tool_of_a_class_body_is_bound_to_the_object() -> None:
    desk = Desk()
    assert desk.where() == "front"
    assert await desk.soon(True) == "FRONT"
    assert "self" not in desk.where.input_schema["properties"]
    assert not desk.where.takes_self
    assert [item.name for item in named_tools([desk.where, desk.soon, desk.plain])] == ["where", "where_soon", "plain"]


def test_a_method_without_its_object_is_refused_in_words() -> None:
    with pytest.raises(ToolDeclarationInvalid, match=r"method without its object: give it as self\.where"):
        named_tools([Desk.where])


def test_an_action_of_a_class_body_is_refused_at_import() -> None:
    with pytest.raises(ToolDeclarationInvalid, match="define it as a function"):

        class Bank:
            @action
            def pay(self, amount: int) -> str:
                """Pay."""
                return "paid"
