"""Lessons of a refused request: an option to leave out or to send under another name, a tool to leave out, no pictures.

A refusal names what it is about in a field of its own (`param`, `loc`) or in words. Words count less: a body may quote
the request, so only names of the request's own options and tools are looked for, and a lesson is kept only when the
next request is not refused (`adapter.py`). Pure.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from chat.llm.adapters.overflow_words import is_overflow
from chat.llm.model_memory import Learned, declaration_mark
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

SYSTEM_ROLE: Final = "system role"
"""The lesson of a model that takes no system message: its text goes before the user's first one."""

REFUSING_STATUSES: Final = frozenset({400, 404, 413, 415, 422, 500})
"""Statuses of refusals that may hold a lesson; llama.cpp says with 500 that it sees no pictures."""

LENGTH_FIELDS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_OTHER_LENGTH: Final = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_OURS: Final = frozenset({"stream_options", "include", SYSTEM_ROLE})  # whose absence changes no answer
_NEVER: Final = frozenset({"model", "messages", "input", "instructions", "stream", "tools", "response_format", "text"})
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "reasoning": ("reasoning", "reasoning_effort", "encrypted_content"),
    "include": ("reasoning", "encrypted_content"),
    "reasoning_effort": ("reasoning", "thinking"),
    "parallel_tool_calls": ("parallel tool calls", "parallel tool calling", "disable_parallel_tool_use"),
    "stop": ("stop_sequences",),
}
"""Further names of options; each also goes by its own name and by that in camel case."""

_REFUSED: Final = re.compile(
    r"support|unknown|unrecogni[sz]ed|unexpected|extra|permitted|allowed|deprecated|invalid|only the default|cannot"
    r"|can't|must|not a valid|not exist|not enabled|not available|disabled|incompatible|too large|too high"
    r"|maximum|range",
    re.IGNORECASE,
)
_CHOICE_REFUSED: Final = re.compile(
    r"support|incompatible|unrecogni[sz]ed|(?:unknown|unexpected) (?:parameter|argument|name|field)|not permitted",
    re.IGNORECASE,
)
_BAD_VALUE: Final = re.compile(
    r"(?:unsupported|invalid)[_ ]value|supported values|(?:must be|expected) one of", re.IGNORECASE
)
_BAD_LENGTH: Final = re.compile(
    r"range|too (?:large|high|big)|maximum|at most|less than|exceed|> ?\d|<= ?\d", re.IGNORECASE
)
_SYSTEM_ROLE: Final = re.compile(
    r"system role (?:is )?not supported|(?:system|developer) (?:message|instruction|prompt)s? (?:is|are) not"
    r"|does not support ['\"`]?system['\"`]?|role ['\"`]?system['\"`]? is not|only user(?:,| and) assistant",
    re.IGNORECASE,
)
_NO_IMAGES: Final = re.compile(
    r"unknown variant [`'\"]?(?:image_url|input_image)"
    r"|image(?:s|_url| input| content| data)?\b[^.\n]{0,40}\b(?:not|n't|only) (?:be )?"
    r"(?:supported|allowed|accept|available)|not? support(?:ed|s)?[^.\n]{0,40}\b(?:image|vision|visual|multimodal)"
    r"|no endpoints found that support image|not a multimodal|mmproj|vision is not|image[^.\n]{0,30} not enabled"
    r"|content\b[^.\n]{0,12}must be a string|content\.type\b[^\n]{0,60}\[['\"]text['\"]\]",
    re.IGNORECASE,
)
_NO_DOCUMENTS: Final = re.compile(
    r"unknown variant [`'\"]?(?:file|input_file|document)\b|(?:file|pdf|document)(?:s| input| content)?\b[^.\n]{0,40}"
    r"\bnot (?:be )?(?:supported|allowed|accept)|not? support(?:ed|s)?[^.\n]{0,40}\b(?:file|pdf|document)",
    re.IGNORECASE,
)
_TOOL_PLACE: Final = re.compile(r"\btools(?:\[(\d+)\]|\.(\d+)\b|['\"], ?(\d+))")
_DECLARATION: Final = re.compile(r"function_declarations\[(\d+)\]")
_MAX_BEGINNING: Final = 6_000
_MAX_END: Final = 2_000
_ESCAPE: Final = re.compile(r"\\+u(?!00[0-7]|d[89a-f])([0-9a-f]{4})", re.IGNORECASE)

Lesson = Callable[[Learned], Learned]
"""The change of what is known of a model."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused request, read. `names`: fields that it names as such, dotted; `text`: its words.

    What it quotes of the request is left out of both, as far as it can be known.
    """

    names: tuple[str, ...]
    text: str

    @property
    def words(self) -> str:
        """Both in one text."""
        return f"{' '.join(self.names)} {self.text}"


def plain_words(body: str) -> str:
    """The body of a refusal, readable: of a long one the beginning and the end, and characters for JSON's escapes."""
    if len(body) > _MAX_BEGINNING + _MAX_END:
        body = f"{body[:_MAX_BEGINNING]}\n…\n{body[-_MAX_END:]}"
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), body)


def read_refusal(body: str) -> Refusal:
    """Read the plain words of a refusal: what it says, and the fields that it names apart from that."""
    names: list[str] = []
    texts: list[str] = []
    try:
        _collect(json.loads(body), names, texts)
    except (ValueError, RecursionError):
        texts = [body]
    text = "\n".join(texts)
    names += [match.replace("'", "").replace(", ", ".") for match in re.findall(r"'loc': \('body', ([^)]+)\)", text)]
    return Refusal(tuple(names), re.sub(r"'input': .*", "", text) if names else text)


def _collect(value: JSONValue, names: list[str], texts: list[str]) -> None:
    """Words and named fields of a decoded body. What pydantic quotes of the request (`input`, `ctx`) is left out."""
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, list):
        for item in value:
            _collect(item, names, texts)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "param" and isinstance(item, str):
                names.append(item)
            elif key == "loc" and isinstance(item, list):
                names.append(".".join(str(step) for step in item if step != "body"))
            elif key not in ("input", "ctx", "url"):
                _collect(item, names, texts)


def lesson_of(body: JSONObject, refusal: Refusal) -> Lesson | None:
    """The lesson of a refusal of this body; `None` where it holds none. A lesson always changes the next body."""
    tool = _refused_tool(body, refusal)
    if tool is not None:
        return _without_tool(tool)
    if is_overflow(refusal.text):
        return None
    refused = refused_options(body, refusal)
    if refused:
        return _without_options(refused, _bad_length(refusal))
    if _SYSTEM_ROLE.search(refusal.text) and _has_system(body):
        return _without_options([SYSTEM_ROLE], is_about_length=False)
    return _about_media(body, refusal.text)


def too_long_answer(body: JSONObject, refusal: Refusal) -> JSONObject | None:
    """The body without its limit of the answer, where that is what does not fit; for this request alone."""
    field = next((name for name in LENGTH_FIELDS if name in body), None)
    if field is None or not is_overflow(refusal.text) or not re.search(rf"{field}|max_tokens|completion", refusal.text):
        return None
    return {key: value for key, value in body.items() if key != field}


def refused_options(body: JSONObject, refusal: Refusal) -> list[str]:
    """Options of the body that a refusal is about, by what it names or else by its words."""
    options = [name for name in body if name not in _NEVER]
    named = {name.partition(".")[0].partition("[")[0] for name in refusal.names}
    refused = [name for name in options if name in named]
    if not refused and not _REFUSED.search(refusal.text):
        return []
    refused = refused or [name for name in options if _is_named(name, refusal.text)]
    if _is_about_value_of_effort(refused, refusal):
        return []
    if "tool_choice" in refused and not _CHOICE_REFUSED.search(refusal.text):
        refused.remove("tool_choice")
    if len(refused) > 1 and re.search(r"\bboth\b|only one", refusal.text):
        refused = refused[-1:]
    return refused


def _is_named(option: str, text: str) -> bool:
    head, *rest = option.split("_")
    names = {option, head + "".join(word.capitalize() for word in rest), *_WORDS.get(option, ())}
    if any(re.search(rf"[`'\"]{re.escape(name)}[`'\".\[]", text) for name in names):
        return True
    if "_" in option or len(option) > 8:  # others are words of the language too: stop, seed, user
        return any(re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text, re.IGNORECASE) for name in names)
    near = r"(?:parameter|argument|field|property|option|key|value|supplied|name|model)s?"
    return any(
        re.search(rf"{near}\W{{1,4}}{re.escape(name)}\b|\b{re.escape(name)}\W{{1,4}}{near}", text) for name in names
    )


def _is_about_value_of_effort(refused: Iterable[str], refusal: Refusal) -> bool:
    """Whether an effort is refused that another one could replace: people chose it, and have to know."""
    words = refusal.words
    has_effort = any(name.startswith("reasoning") for name in refused)
    return has_effort and "effort" in words and _BAD_VALUE.search(words) is not None


def _bad_length(refusal: Refusal) -> bool:
    return _BAD_LENGTH.search(refusal.text) is not None


def _without_options(options: Iterable[str], is_about_length: bool) -> Lesson:
    def learn(known: Learned) -> Learned:
        left_out, renamed = list(known.left_out), dict(known.renamed)
        for option in options:
            first = next((name for name, other in renamed.items() if other == option), option)
            other = _OTHER_LENGTH.get(option)
            if first == option and other is not None and not is_about_length and option not in renamed:
                renamed[option] = other
            else:  # refused by either name, or as a value
                left_out += [name for name in _with_companions(first) if name not in left_out]
        return replace(known, left_out=tuple(left_out), renamed=renamed)

    return learn


def _with_companions(option: str) -> tuple[str, ...]:
    return ("reasoning", "include") if option in ("reasoning", "include") else (option,)


def _without_tool(tool: JSONObject) -> Lesson:
    name, mark = tool_name(tool), tool_mark(tool)
    return lambda known: replace(known, refused_tools={**known.refused_tools, name: mark})


def _refused_tool(body: JSONObject, refusal: Refusal) -> JSONObject | None:
    """The declaration that a refusal names by its name or its place in the list; not one that has to be called."""
    tools: list[JSONObject] = body.get("tools") or []
    found = _tool_by_name(tools, refusal.text) or _tool_by_place(tools, refusal.words)
    choice = body.get("tool_choice")
    forced = tool_name(choice) if isinstance(choice, dict) else ""
    return found if found is not None and tool_name(found) != forced else None


def _tool_by_name(tools: list[JSONObject], text: str) -> JSONObject | None:
    if not re.search(r"schema|parameters|declaration|properties|items", text, re.IGNORECASE):
        return None
    for tool in sorted(tools, key=lambda tool: -len(tool_name(tool))):
        name = re.escape(tool_name(tool))
        named = rf"(?:function|tool)s?(?: name)?[ :=]+[`'\"]?{name}(?![\w-])|[`'\"]{name}[`'\"]"
        if re.search(named, text, re.IGNORECASE):
            return tool
    return None


def _tool_by_place(tools: list[JSONObject], text: str) -> JSONObject | None:
    match = _DECLARATION.search(text) or _TOOL_PLACE.search(text)
    place = next((int(group) for group in match.groups() if group), len(tools)) if match else len(tools)
    return tools[place] if place < len(tools) else None


def tool_name(tool: JSONObject) -> str:
    """The name of a declared or chosen tool on either wire."""
    return str((tool.get("function") or tool).get("name") or "")


def tool_mark(tool: JSONObject) -> str:
    """The mark of a declaration on either wire."""
    declared = tool.get("function") or tool
    return declaration_mark(
        str(declared.get("name") or ""), str(declared.get("description") or ""), declared.get("parameters")
    )


def _has_system(body: JSONObject) -> bool:
    messages: list[JSONObject] = body.get("messages") or []
    return bool(messages) and messages[0].get("role") == "system" and len(messages) > 1


def _about_media(body: JSONObject, text: str) -> Lesson | None:
    kinds = _media_of(body)
    for medium, words in (("image", _NO_IMAGES), ("document", _NO_DOCUMENTS)):
        if medium in kinds and words.search(text):
            return _without_medium(medium)
    return None


def _without_medium(medium: str) -> Lesson:
    return lambda known: replace(known, refused_inputs=tuple(sorted({*known.refused_inputs, medium})))


def _media_of(body: JSONObject) -> set[str]:
    """The media in a body, by the types of its parts."""
    named = {"image_url": "image", "input_image": "image", "file": "document", "input_file": "document"}
    found: set[str] = set()
    items: list[JSONObject] = body.get("messages") or body.get("input") or []
    for item in items:
        for parts in (item.get("content"), item.get("output")):
            for part in parts if isinstance(parts, list) else []:
                found.add(named.get(part.get("type"), ""))
    return found - {""}


@dataclass(frozen=True, slots=True)
class Sent:
    """A body as it is sent, with the options and the tools that are missing in it because they were refused before."""

    body: JSONObject
    left_out: tuple[str, ...]
    tools: tuple[str, ...]


def as_learned(body: JSONObject, known: Learned) -> Sent:
    """The body without what was refused before. The body that is given is not changed."""
    left_out = [name for name in known.left_out if name in body]
    revised = {known.renamed.get(key, key): value for key, value in body.items() if key not in left_out}
    refused = [tool for tool in body.get("tools") or () if known.refused_tools.get(tool_name(tool)) == tool_mark(tool)]
    if refused:
        revised["tools"] = [tool for tool in body["tools"] if tool not in refused]
        if not revised["tools"]:
            for key in ("tools", "tool_choice", "parallel_tool_calls"):
                revised.pop(key, None)
    if SYSTEM_ROLE in known.left_out and _has_system(body):
        revised["messages"] = _as_users(body["messages"])
    return Sent(revised, tuple(name for name in left_out if name not in _OURS), tuple(map(tool_name, refused)))


def _as_users(messages: list[JSONObject]) -> list[JSONObject]:
    """The system's text at the beginning of the first message, which is then the user's."""
    system, first, *rest = messages
    if first["role"] != "user":
        return [{"role": "user", "content": system["content"]}, first, *rest]
    content = first["content"]
    if isinstance(content, str):
        return [{**first, "content": f"{system['content']}\n\n{content}"}, *rest]
    return [{**first, "content": [{"type": "text", "text": system["content"]}, *content]}, *rest]
