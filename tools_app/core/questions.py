"""The question that a person answers about a call: its words, and which arguments the answer may change.

The words come from the tool's author and are for people: a title, and a sentence with the arguments filled in. The
description of a tool is written for models and is not part of them.
"""

import string
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Final, TypeAlias

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump, fingerprint
from tools_app.core.guard.rules import ORIGIN, SeenText, texts_in
from tools_app.core.permissions.rules import CallFacts, facts_from
from tools_app.core.schema_check import problems
from tools_app.core.tool_calls import ToolCall
from tools_app.errors import EditInvalid, ToolDeclarationInvalid

MAX_TITLE_CHARS: Final = 80
MAX_SENTENCE_CHARS: Final = 500
MAX_ARGUMENT_CHARS: Final = 200

Editable: TypeAlias = bool | tuple[str, ...]
"""The arguments that a person may change when approving: all, none, or those of these names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """An allowance that a person may give for always, as key and pattern of a rule.

    `here_only`: in this conversation, since what is allowed in all says nothing about one that works for another.
    """

    key: str
    pattern: str
    here_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question to a person, as stored with its call. `sentence` is empty where the tool has none of its own.

    `input_schema` is there where arguments may be changed: the schema that they have to fit. `lasting`: it stays open
    when the conversation goes on. `because`: the texts of others for which the injection guard asks. `permissions`: of
    an action, nothing for any other tool. `request_id`: of the request in whose turn it is asked. `facts`: what rules
    about the call go by. `offers`: the allowances that a person may give for always. `rule`: the rule that asks.
    `choices`: what the person chooses among; such a call runs with the answers.
    """

    title: str = ""
    sentence: str = ""
    may_edit: Editable = False
    input_schema: JSONObject | None = None
    risk: str = ""  # of an action: low, medium or high
    lasting: bool = False
    because: tuple[SeenText, ...] = ()
    runs_elsewhere: bool = False  # a client runs the call once it is approved
    permissions: tuple[str, ...] | None = None
    request_id: str = ""
    key: str = ""  # why it is asked, where no rule of the tool asks: `doom_loop`
    facts: CallFacts | None = None
    offers: tuple[Offer, ...] = ()
    rule: str = ""
    choices: tuple[JSONObject, ...] = ()

    def to_json(self) -> JSONObject:
        """The stored form."""
        names = list(self.may_edit) if isinstance(self.may_edit, tuple) else self.may_edit
        texts: JSONValue = [text.to_json() for text in self.because]
        permissions = None if self.permissions is None else list(self.permissions)
        made: JSONObject = {
            "may_edit": names,
            "because": texts,
            "permissions": permissions,
            "facts": None if self.facts is None else self.facts.to_json(),
            "offers": [asdict(offer) for offer in self.offers],
            "choices": list(self.choices),
        }
        return {**{name: getattr(self, name) for name in _PLAIN}, **made}

    def for_clients(self) -> JSONObject:
        """The form of the approval request on the wire, without the schema."""
        stored = self.to_json()
        shown: JSONObject = {"title": stored["title"], "sentence": stored["sentence"], "mayEdit": stored["may_edit"]}
        shown |= {"risk": self.risk} if self.risk else {}
        shown |= {"lasting": True} if self.lasting else {}
        shown |= {"key": self.key} if self.key else {}
        shown |= {name: stored[name] for name in ("rule", "choices") if stored[name]}
        return shown | ({"because": stored["because"]} if self.because else {})

    def described(self, call: ToolCall) -> JSONObject:
        """The descriptor of an approval as published clients know it (`ActionApprovalDescriptor`)."""
        shown: JSONObject = {
            "requestId": self.request_id,
            "toolCallId": call.call_id,
            "action": call.tool_name,
            "summary": self.sentence or title_of(call.tool_name, self.title),
            "input": call.input,
            "permissions": list(self.permissions or ()),
            "kind": "durable-pause" if self.lasting else "approval-gated",
        }
        return shown | ({"risk": self.risk} if self.risk else {})


_PLAIN: Final = ("title", "sentence", "input_schema", "risk", "lasting", "runs_elsewhere", "request_id", "rule")


def question_of(stored: Mapping[str, JSONValue] | None) -> Question:
    """Read a stored question; calls of earlier versions have none."""
    if not stored:
        return Question()
    may_edit, schema = stored.get("may_edit"), stored.get("input_schema")
    permissions, facts = stored.get("permissions"), stored.get("facts")
    return Question(
        title=str(stored.get("title") or ""),
        sentence=str(stored.get("sentence") or ""),
        may_edit=tuple(str(name) for name in may_edit) if isinstance(may_edit, list) else bool(may_edit),
        input_schema=schema if isinstance(schema, dict) else None,
        risk=str(stored.get("risk") or ""),
        lasting=stored.get("lasting") is True,
        because=tuple(texts_in({ORIGIN: stored.get("because")})),
        runs_elsewhere=stored.get("runs_elsewhere") is True,
        permissions=tuple(str(name) for name in permissions) if isinstance(permissions, list) else None,
        request_id=str(stored.get("request_id") or ""),
        key=str(stored.get("key") or ""),
        facts=facts_from(facts) if isinstance(facts, dict) else None,
        offers=tuple(
            Offer(key=str(each["key"]), pattern=str(each["pattern"]), here_only=each.get("here_only") is True)
            for each in _objects(stored, "offers")
        ),
        rule=str(stored.get("rule") or ""),
        choices=tuple(_objects(stored, "choices")),
    )


def _objects(stored: Mapping[str, JSONValue], name: str) -> list[JSONObject]:
    given = stored.get(name)
    return [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []


def title_of(name: str, title: str = "") -> str:
    """The name of a tool for people: its title, else words made of its name ("order_status": "Order status")."""
    words = " ".join(name.replace("_", " ").replace("-", " ").split())
    return title or words[:1].upper() + words[1:]


def check_title(tool_name: str, title: str) -> None:
    """Refuse a title that is too long or not one line. Errors: `ToolDeclarationInvalid`."""
    if len(title) > MAX_TITLE_CHARS or title != " ".join(title.split()):
        raise ToolDeclarationInvalid(
            f"Tool {tool_name!r}: a title is one line of at most {MAX_TITLE_CHARS} characters, not {title!r}"
        )


def check_template(tool_name: str, template: str, schema: JSONObject) -> None:
    """Refuse a sentence that names something else than an argument. Errors: `ToolDeclarationInvalid`.

    A field is the name of an argument, with a format if need be: `{amount:.2f}`. What a model wrote is filled in, so
    attributes, indices and conversions are no part of it.
    """
    known: JSONObject = schema.get("properties", {})
    try:
        fields = list(_fields(template))
    except ValueError as error:
        raise ToolDeclarationInvalid(f"Tool {tool_name!r}: approval_text is no format string: {error}") from error
    for name, spec, conversion in fields:
        if name not in known or conversion or "{" in spec:
            names = ", ".join(known) or "none"
            raise ToolDeclarationInvalid(
                f"Tool {tool_name!r}: approval_text names {{{name}}}, which is none of its arguments ({names})"
            )


def check_editable(tool_name: str, editable: Editable, schema: JSONObject) -> None:
    """Refuse names that are no arguments of the tool. Errors: `ToolDeclarationInvalid`."""
    known: JSONObject = schema.get("properties", {})
    for name in editable if isinstance(editable, tuple) else ():
        if name not in known:
            names = ", ".join(known) or "none"
            raise ToolDeclarationInvalid(
                f"Tool {tool_name!r}: editable names {name!r}, which is none of its arguments ({names})"
            )


def fill_in(template: str, arguments: JSONObject, schema: JSONObject) -> str:
    """A tool's sentence with the arguments of a call; one that the model left out has its default."""
    known: JSONObject = schema.get("properties", {})
    made: list[str] = []
    for literal, name, spec, _ in string.Formatter().parse(template):
        made.append(literal)
        if name is not None:
            value = arguments[name] if name in arguments else known.get(name, {}).get("default")
            made.append(_shown(value, spec or ""))
    return one_line("".join(made))


def one_line(text: str) -> str:
    """A sentence as it is shown: one line, of a bounded length."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_SENTENCE_CHARS else f"{line[: MAX_SENTENCE_CHARS - 1]}…"


def checked_edit(question: Question, asked: JSONObject, edited: JSONObject) -> JSONObject | None:
    """The changed arguments when they may run instead of those that were asked about; nothing when they are the same.

    Errors: `EditInvalid`, whose `problems` name the arguments that may not be changed, or do not fit the schema.
    """
    if fingerprint(edited) == fingerprint(asked):
        return None
    changed = sorted(name for name in {*asked, *edited} if not _is_same(asked, edited, name))
    may_edit = question.may_edit
    refused = [name for name in changed if may_edit is not True and (may_edit is False or name not in may_edit)]
    if refused:
        found: list[JSONValue] = [f"{name}: may not be changed" for name in refused]
        raise EditInvalid(f"These arguments may not be changed: {', '.join(refused)}.", problems=found)
    if question.input_schema is not None and (wrong := problems(edited, question.input_schema)):
        raise EditInvalid(f"The changed arguments do not fit: {'; '.join(wrong)}.", problems=list(wrong))
    return edited


def _fields(template: str) -> Iterator[tuple[str, str, str]]:
    for _, name, spec, conversion in string.Formatter().parse(template):
        if name is not None:
            yield name, spec or "", conversion or ""


def _shown(value: JSONValue, spec: str) -> str:
    text = value if isinstance(value, str) else "" if value is None else dump(value)
    if spec:
        with suppress(TypeError, ValueError):  # the model wrote another type than expected: it is shown as it is
            text = format(value, spec)
    return text if len(text) <= MAX_ARGUMENT_CHARS else f"{text[: MAX_ARGUMENT_CHARS - 1]}…"


def _is_same(one: JSONObject, other: JSONObject, name: str) -> bool:
    return name in one and name in other and fingerprint(one[name]) == fingerprint(other[name])
