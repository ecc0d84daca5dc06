"""Structured answers: the shape that a turn asks for, and the answer read and checked at its end."""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from chat.errors import OutputInvalid, TurnConfigInvalid
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, load
from thinkproject.kernel.phrases import Phrase
from tools_app.core.schema import json_schema
from tools_app.core.schema_check import check_schema, problems
from tools_app.errors import SchemaInvalid


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The shape of an answer: a pydantic model, or a JSON Schema.

    `by_tool` requests it as the call of a tool, for models without support for schemas. Models whose
    provider refuses the schema are asked that way automatically. `tries`: how often the model is asked again
    after an answer of another form, with what is wrong; each is a step of the turn. Then the turn fails.
    """

    schema: type[BaseModel] | JSONObject
    by_tool: bool = False
    tries: int = 0

    @property
    def json_schema(self) -> JSONObject:
        """The schema as providers get it."""
        return dict(self.schema) if isinstance(self.schema, dict) else json_schema(self.schema)

    def read(self, text: str) -> JSONValue:
        """Parse an answer. Errors: `OutputInvalid`, with the violations."""
        try:
            value = load(_unfenced(text))
        except ValueError as error:
            if not text.strip():
                raise OutputInvalid("The model was asked for a structured answer and gave nothing.") from error
            raise OutputInvalid("The model was asked for a structured answer and gave no JSON.") from error
        found = self._problems(value)
        if found:
            listed = "; ".join(found)
            raise OutputInvalid(
                Phrase("The model's answer does not have the form that was asked for: {problems}", problems=listed)
            )
        return value

    def correction_of(self, text: str) -> str:
        """The words for the model about an answer of another form; empty for one that fits."""
        try:
            self.read(text)
        except OutputInvalid as error:
            return f"{error.message} Answer again, with JSON of that form and nothing else."
        return ""

    def _problems(self, value: JSONValue) -> list[str]:
        if isinstance(self.schema, dict):
            return problems(value, self.schema)
        try:
            self.schema.model_validate(value)
        except ValidationError as error:
            return [
                f"{'.'.join(str(step) for step in problem['loc']) or 'the value'}: {problem['msg']}"
                for problem in error.errors(include_url=False, include_context=False, include_input=False)
            ]
        return []


def output_of(value: Any) -> Output | None:
    """Parse `TurnConfig.output`. Errors: `TurnConfigInvalid`."""
    if isinstance(value, dict) or (isinstance(value, type) and issubclass(value, BaseModel)):
        value = Output(schema=value)
    if value is None:
        return None
    if isinstance(value, Output):
        _check(value)
        return value
    raise TurnConfigInvalid(f"output must be a pydantic model, a JSON Schema or an Output, not {value!r}.")


def _check(output: Output) -> None:
    tries: object = output.tries
    if type(tries) is not int or tries < 0:
        raise TurnConfigInvalid(f"The tries of an Output must be a whole number from 0, not {tries!r}.")
    if isinstance(output.schema, dict):
        try:
            check_schema(output.schema)
        except SchemaInvalid as error:
            raise TurnConfigInvalid(error.message) from error


def _unfenced(text: str) -> str:
    """The text without the code fence that some models put around JSON despite instructions."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        return text[text.index("\n") + 1 : -3]
    return text
