"""Manners of providers: what a server checks of a request before it answers, with the words in which it refuses.

They stand in `<provider>/provider.json` beside the recordings (`docs/reference/recordings.md`); the scripted server
checks a request that comes under the provider's name (`/<provider>/v1/…`). Pure.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from chat.llm.scripted.script import HttpError
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump

FILE: Final = "provider.json"
_NO_RESULT: Final = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
)
_LONE_REASONING: Final = "Item of type 'reasoning' was provided without its required following item."
_NO_ITEM: Final = "No tool output found for function call."


class Entry(NamedTuple):
    """One message, or one item of the Responses API, as checks see it. `result`: the id of the call that it answers."""

    role: str
    message: JSONObject
    calls: tuple[JSONObject, ...] = ()
    result: str = ""

    @property
    def content(self) -> JSONValue:
        """Text, or a list of parts."""
        return self.message.get("output" if self.role == "tool" and "output" in self.message else "content")

    @property
    def parts(self) -> set[str]:
        """The kinds of its parts; none of plain text."""
        content = self.content
        return {str(part.get("type")) for part in content} if isinstance(content, list) else set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """One provider. `facts`: the whole of its file."""

    facts: JSONObject

    @property
    def checks(self) -> list[JSONObject]:
        """The checks of its server: `{rule, value, status, words, source}`."""
        return list(self.facts.get("checks") or ())

    def refusal_of(self, body: JSONObject) -> HttpError | None:
        """The refusal of a request; nothing where it is taken. Calls without their results are refused by all."""
        entries = read_entries(body)
        for check in self.checks:
            if _RULES[check["rule"]](entries, body, check.get("value")):
                return _refusal(str(check["words"]), int(check.get("status", 400)))
        if words := _unmatched(entries, is_chat="messages" in body):
            return _refusal(words, 400)
        return None


def read_manners(folder: Path, provider: str) -> Manners | None:
    """The manners of a provider; nothing for one without a file. Errors: `ValueError` for a file that is none."""
    path = folder / provider / FILE
    if not re.fullmatch(r"[\w-]+", provider) or not path.is_file():
        return None
    facts = json.loads(path.read_text(encoding="utf-8"))
    unknown = {check["rule"] for check in facts.get("checks") or ()} - _RULES.keys()
    if unknown:
        raise ValueError(f"{provider}/{FILE} has rules that there are not: {sorted(unknown)}")
    return Manners(facts=facts)


def read_entries(body: JSONObject) -> list[Entry]:
    """The messages of a body of either wire, without the system's."""
    if "messages" in body:
        return [
            Entry(m["role"], m, tuple(m.get("tool_calls") or ()), str(m.get("tool_call_id") or ""))
            for m in body["messages"]
            if m["role"] not in ("system", "developer")
        ]
    found: list[Entry] = []
    for item in body.get("input") or ():
        match item.get("type"):
            case "function_call":
                found.append(Entry("assistant", item, ({"id": item["call_id"]},)))
            case "function_call_output":
                found.append(Entry("tool", item, (), item["call_id"]))
            case "reasoning":
                found.append(Entry("reasoning", item))
            case _:
                found.append(Entry(item["role"], item))
    return found


def _refusal(words: str, status: int) -> HttpError:
    return HttpError(line=-1, status=status, code="invalid_request_error", message=words)


def _unmatched(entries: list[Entry], *, is_chat: bool) -> str:
    """The words for calls without exactly one result right after them, results of no call, and lone reasoning."""
    open_ids: list[str] = []
    for entry, following in zip(entries, [*entries[1:], None], strict=True):
        if entry.role == "reasoning" and (following is None or following.role not in ("assistant", "reasoning")):
            return _LONE_REASONING
        if entry.role == "tool":
            if entry.result not in open_ids:
                return f"messages with role 'tool' must be a response to a preceding call: {entry.result}"
            open_ids.remove(entry.result)
        elif open_ids and (is_chat or not entry.calls):
            break
        open_ids += [call["id"] for call in entry.calls]
    if not open_ids:
        return ""
    return f"{_NO_RESULT if is_chat else _NO_ITEM} {open_ids[0]}"


def _has_odd_id(entries: list[Entry], _body: JSONObject, pattern: JSONValue) -> bool:
    ids = [call["id"] for entry in entries for call in entry.calls] + [e.result for e in entries if e.role == "tool"]
    return any(not re.fullmatch(str(pattern), call_id) for call_id in ids)


def _has_empty(entries: list[Entry], _body: JSONObject, roles: JSONValue) -> bool:
    for entry in entries:
        texts = [part["text"] for part in entry.content if "text" in part] if entry.parts else [entry.content or ""]
        if entry.role in roles and not (entry.calls and entry.content is None) and not all(map(str.strip, texts)):
            return True
    return False


def _has_user_after_result(entries: list[Entry], _body: JSONObject, _value: JSONValue) -> bool:
    return any(a.role == "tool" and b.role == "user" for a, b in pairwise(entries))


def _begins_with_answer(entries: list[Entry], _body: JSONObject, _value: JSONValue) -> bool:
    return bool(entries) and entries[0].role != "user"


def _has_roles_twice(entries: list[Entry], _body: JSONObject, _value: JSONValue) -> bool:
    pairs = pairwise(entries)
    return _begins_with_answer(entries, _body, None) or any(a.role == b.role != "tool" for a, b in pairs)


def _lacks_signature(entries: list[Entry], _body: JSONObject, _value: JSONValue) -> bool:
    firsts = [entry.calls[0] for entry in entries if entry.calls]
    return any(not call.get("extra_content", {}).get("google", {}).get("thought_signature") for call in firsts)


def _lacks_reasoning(entries: list[Entry], _body: JSONObject, _value: JSONValue) -> bool:
    return any(entry.calls and not entry.message.get("reasoning_content") for entry in entries)


def _has_field(entries: list[Entry], _body: JSONObject, names: JSONValue) -> bool:
    return any(set(names) & entry.message.keys() for entry in entries)


def _has_other_parts(entries: list[Entry], _body: JSONObject, kinds: JSONValue) -> bool:
    return any(entry.parts - set(kinds) for entry in entries)


def _has_option(_entries: list[Entry], body: JSONObject, names: JSONValue) -> bool:
    return bool(set(names) & body.keys())


def _has_schema(_entries: list[Entry], body: JSONObject, _value: JSONValue) -> bool:
    return '"json_schema"' in dump([body.get("response_format"), body.get("text")])


_Rule = Callable[[list[Entry], JSONObject, JSONValue], bool]
_RULES: Final[Mapping[str, _Rule]] = {
    "ids": _has_odd_id,
    "not empty": _has_empty,
    "answer after results": _has_user_after_result,
    "user first": _begins_with_answer,
    "roles alternate": _has_roles_twice,
    "signature": _lacks_signature,
    "reasoning": _lacks_reasoning,
    "no fields": _has_field,
    "parts": _has_other_parts,
    "no options": _has_option,
    "no schema": _has_schema,
}
"""By name: whether a request breaks it. The value of a check says of which ids, roles, fields, parts or options."""
