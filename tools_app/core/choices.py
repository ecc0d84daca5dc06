"""Questions with choices: their form, and the answers that a person may give to them. Pure."""

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.core.questions import Question
from tools_app.errors import EditInvalid

ANSWERS: Final = "answers"
"""Name of the argument that has the answers: a list of texts for each question."""

MAX_QUESTIONS: Final = 8
MAX_OPTIONS: Final = 20
MAX_ANSWER_CHARS: Final = 4_000

Line = Annotated[str, Field(min_length=1, max_length=200)]


class ChoiceOption(BaseModel):
    """One option."""

    model_config = ConfigDict(extra="forbid")

    label: Line
    description: Annotated[str, Field(max_length=500)] = ""


class ChoiceQuestion(BaseModel):
    """One question."""

    model_config = ConfigDict(extra="forbid")

    question: Annotated[str, Field(min_length=1, max_length=1_000, description="The whole question.")]
    header: Annotated[str, Field(max_length=30, description="In a word or two.")] = ""
    options: Annotated[list[ChoiceOption], Field(max_length=MAX_OPTIONS)] = []
    multiple: Annotated[bool, Field(description="Whether several options may be chosen.")] = False
    custom: Annotated[bool, Field(description="Whether an answer in own words is welcome.")] = True


def with_answers_of(question: Question, asked: JSONObject, answers: JSONValue) -> JSONObject:
    """The arguments of a call with a person's answers, one list for each of its questions.

    Errors: `EditInvalid`, whose `problems` say which answer is missing or is none of the choices.
    """
    given = answers if isinstance(answers, list) else []
    if not all(isinstance(each, list) and all(isinstance(text, str) for text in each) for each in given):
        raise EditInvalid("An answer is a list of texts for each question.", problems=[])
    wrong = [
        f"{number}: {problem}"
        for number, each in enumerate(question.choices, start=1)
        if (problem := _problem(each, given[number - 1] if number <= len(given) else []))
    ]
    if len(given) > len(question.choices):
        wrong.append("There are more answers than questions.")
    if wrong:
        raise EditInvalid(f"These answers do not fit: {'; '.join(wrong)}", problems=list(wrong))
    return {**asked, ANSWERS: [[text.strip() for text in each] for each in given]}


def _problem(question: JSONObject, answer: list[str]) -> str:
    labels = {option["label"] for option in question.get("options") or []}
    texts = [text.strip() for text in answer]
    own = [text for text in texts if text not in labels]
    if not texts or not all(texts):
        return "an answer is needed"
    if any(len(text) > MAX_ANSWER_CHARS or "\0" in text for text in texts):
        return f"an answer has at most {MAX_ANSWER_CHARS} characters"
    if len(texts) > 1 and not question.get("multiple"):
        return "one answer is wanted"
    if len(set(texts)) < len(texts):
        return "an answer is given twice"
    if own and labels and not question.get("custom", True):
        return f"{own[0]!r} is none of the options"
    return "one answer in own words is wanted" if len(own) > 1 else ""
