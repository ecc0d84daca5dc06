"""The tool `ask_user`: questions with choices, which a person answers in the page, the inbox or over the API."""

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.choices import MAX_QUESTIONS, ChoiceQuestion
from tools_app.core.schema import json_schema
from tools_app.core.tool import Tool

NAME: Final = "ask_user"


class AskInput(BaseModel):
    """Ask the person you work for, where what to do depends on it and you cannot find out by yourself.

    Give options where there are few; own words are welcome unless `custom` is false. The conversation waits meanwhile.
    """

    model_config = ConfigDict(extra="forbid")

    questions: Annotated[list[ChoiceQuestion], Field(min_length=1, max_length=MAX_QUESTIONS)]


class AnsweredInput(AskInput):
    """The same with the answers, as the call runs once it has them: those of a person, whatever the model wrote."""

    answers: list[list[str]] = []


def create_question_tool(*, name: str = NAME) -> Tool:
    """Make the tool. Its calls wait for a person, and no rule or model answers in that person's place."""

    async def ask(questions: list[ChoiceQuestion], answers: list[list[str]]) -> JSONObject:
        pairs = zip(questions, answers, strict=True)
        return {"answers": [{"question": asked.question, "answer": given} for asked, given in pairs]}

    schema = json_schema(AskInput)
    description = schema.pop("description")
    return Tool(
        name=name,
        description=description,
        input_schema=schema,
        function=ask,
        arguments=AnsweredInput,
        needs_approval=True,
        asks_person=True,
        read_only=True,
        title="Question",
        approval_text=lambda given: str(given["questions"][0]["question"]),
    )


ask_user: Final = create_question_tool()
"""The tool under its usual name, for `get_tools()`."""
