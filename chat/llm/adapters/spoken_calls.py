"""Calls that a model writes into its text, where its server does not read them out. Pure.

Text is no command: what counts is an answer that is nothing but calls, or calls in the marks of the model's template
at its very end, of tools that were offered, and not in code. Anything else stays text. The forms are those of the
templates that https://docs.vllm.ai/en/latest/features/tool_calling.html has parsers for.
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump, load

Tools = Mapping[str, JSONObject]
Found = Iterator[tuple[str, JSONObject]]

_MARKS: Final = {
    "<tool_call>": "</tool_call>",  # Hermes, Qwen, GLM, ERNIE
    "<tool_calls>": "</tool_calls>",  # Jamba, Hunyuan, MiniMax M1
    "<function_calls>": "</function_calls>",  # Claude, OLMo
    "<TOOLCALL>": "</TOOLCALL>",  # Nemotron
    "<seed:tool_call>": "</seed:tool_call>",
    "<minimax:tool_call>": "</minimax:tool_call>",
    "<longcat_tool_call>": "</longcat_tool_call>",
    "<｜DSML｜function_calls>": "</｜DSML｜function_calls>",  # DeepSeek 3.2
    "<｜tool▁calls▁begin｜>": "<｜tool▁calls▁end｜>",  # DeepSeek 3 and R1
    "<｜tool▁call▁begin｜>": "<｜tool▁call▁end｜>",
    "<|tool_calls_section_begin|>": "<|tool_calls_section_end|>",  # Kimi K2
    "<|tool_call_begin|>": "<|tool_call_end|>",
    "<|START_ACTION|>": "<|END_ACTION|>",  # Cohere
    "<|action_start|><|plugin|>": "<|action_end|>",  # InternLM
    "<|python_start|>": "<|python_end|>",  # Llama 4
    "<start_function_call>": "<end_function_call>",  # FunctionGemma
    "<|tool_call>": "<tool_call|>",  # Gemma 4
    "<|python_tag|>": "",  # Llama 3
    "[TOOL_CALLS]": "",  # Mistral
    "<|tool_call|>": "",  # Granite, Phi-4
    "<function_call>": "",  # Granite
    "<|start|>assistant": "",  # gpt-oss
}
"""The marks before and behind calls; the second is empty where a template has none."""

_BETWEEN: Final = re.compile(r"[\s;,]+|<\|(?:eom_id|eot_id|im_end|end|call|/tool_call)\|>|</s>|```")
_PREFIX: Final = "(?:antml:|｜DSML｜)?"
_ELEMENT: Final = rf"<(?:function=|{_PREFIX}invoke name=[\"'])(?P<name>[\w.-]{{1,64}})[\"']?>"
_ELEMENT_END: Final = rf"</(?:function|{_PREFIX}invoke)>"
_OPENING: Final = re.compile("|".join([*map(re.escape, _MARKS), _ELEMENT, r"<\|channel\|>commentary to="]))
_element: Final = re.compile(_ELEMENT).match
_element_end: Final = re.compile(rf"\s*{_ELEMENT_END}").match
_pair: Final = re.compile(
    rf"\s*<{_PREFIX}parameter(?:=| name=[\"'])(?P<name>[^>\"']+)(?:[\"'][^>]*)?>(?P<value>.*?)</{_PREFIX}parameter>"
    rf"(?=\s*(?:<{_PREFIX}parameter\b|{_ELEMENT_END}))"
    r"|\s*<arg_key>(?P<key>.*?)</arg_key>\s*<arg_value>(?P<arg>.*?)</arg_value>(?=\s*(?:<arg_key>|</tool_call>))",
    re.DOTALL,
).match
_NAME: Final = r"(?P<name>[\w.-]{1,64}+)"
_named: Final = re.compile(
    rf"(?:function<｜tool▁sep｜>|functions\.|call:|(?:<\|channel\|>\w{{1,16}}+ )?to=functions\.)?{_NAME}"
    r"(?::\d{1,9}+)?(?:\[CALL_ID\]\w{1,64}+)?\s*+(?:<\|channel\|>\w{1,16}+)?\s*+(?:<\|constrain\|>)?(?:json)?\s*+"
    r"(?:\[ARGS\]|<\|tool_call_argument_begin\|>|<｜tool▁sep｜>|<\|message\|>)?\s*+(?:```(?:json)?\s*+)?(?=\{)"
).match
_bare_name: Final = re.compile(rf"{_NAME}\s*+(?=<arg_key>|</tool_call>)").match
_fence: Final = re.compile(r"```(json|tool_call|tool_code)?\s*+").match
_UNQUOTED: Final = re.compile(r"<\|\"\|>(.*?)<\|\"\|>|<escape>(.*?)<escape>|\b(\w++)(?=:)", re.DOTALL)
_KEYS: Final = frozenset({"name", "tool_name", "arguments", "parameters", "type", "id", "tool_call_id"})
_read_value: Final = json.JSONDecoder(strict=False).raw_decode


def spoken_calls(text: str, tools: Tools) -> list[tuple[str, JSONObject]]:
    """The calls that an answer consists of or ends with: names and inputs, in order; nothing where it has none.

    `tools`: the schemas of the inputs of those that were offered, by name.
    """
    for scanner in _places(text.strip(), tools):
        try:
            found = scanner.calls()
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            continue  # no calls, or not calls alone
        if all(name in tools for name, _ in found):
            return found
    return []


def _places(text: str, tools: Tools) -> "Iterator[_Scanner]":
    """The texts in which calls may be all there is: the whole of the answer, and what begins with a mark."""
    fence = _fence(text) if text.endswith("```") else None
    bare = text[fence.end() : -3] if fence else text.removeprefix("functools")
    if fence and fence[1] == "tool_code":
        yield _Scanner(f"[{bare}]", tools, is_marked=False)
    if bare[:1] in ("{", "["):
        yield _Scanner(bare, tools, is_marked=False)
    fences = passed = 0
    for match in _OPENING.finditer(text):
        at = match.start()
        fences += text.count("```", passed, at)
        passed = at
        if not fences % 2 and not text.count("`", text.rfind("\n", 0, at) + 1, at) % 2:
            yield _Scanner(text[at:], tools, is_marked=True)
            return


class _Scanner:
    """A text that is read from call to call. Errors of all its methods: `ValueError` and its kin where it is another.

    `is_marked`: it begins with a mark, so that forms count which are words elsewhere.
    """

    def __init__(self, text: str, tools: Tools, *, is_marked: bool) -> None:
        self._text, self._tools, self._is_marked = text, tools, is_marked
        self._at = 0
        self._open: list[str] = []

    def calls(self) -> list[tuple[str, JSONObject]]:
        """All calls of the text, which has nothing else."""
        found: list[tuple[str, JSONObject]] = []
        while self._goes_on():
            before = self._at
            found += self._next()
            if self._at == before:
                raise ValueError("no call")
        if self._open:
            raise ValueError("not closed")
        return found

    def _goes_on(self) -> bool:
        """Pass over marks and white space; whether anything is behind."""
        while self._at < len(self._text):
            if between := _BETWEEN.match(self._text, self._at):
                self._at = between.end()
            elif not self._passes_mark():
                return True
        return False

    def _passes_mark(self) -> bool:
        for opening, closing in _MARKS.items():
            if self._text.startswith(opening, self._at):
                self._at += len(opening)
                self._open += [closing] if closing else []
                return True
            if closing and self._text.startswith(closing, self._at):
                if self._open and self._open.pop() != closing:
                    raise ValueError("closed by another")
                self._at += len(closing)  # one without an opening, which models forget
                return True
        return False

    def _next(self) -> Found:
        if self._text[self._at] in "{[":
            try:
                return _of_json(self._value(), is_marked=self._is_marked)
            except json.JSONDecodeError:
                return self._python()
        if match := _element(self._text, self._at):
            self._at = match.end()
            return self._inside(match["name"])
        if not self._is_marked:
            raise ValueError("no call")
        if match := _named(self._text, self._at):
            self._at = match.end()
            return iter([(match["name"], self._object())])
        if match := _bare_name(self._text, self._at):
            self._at = match.end()
            return iter([(match["name"], self._pairs(match["name"]))])
        return self._python()

    def _value(self) -> JSONValue:
        value, self._at = _read_value(self._text, self._at)
        return value

    def _object(self) -> JSONObject:
        """An object, in JSON or in the words of Gemma."""
        try:
            value = self._value()
        except json.JSONDecodeError:
            value = load(_UNQUOTED.sub(lambda match: dump(match[1] or match[2] or match[3] or ""), self._rest()))
        if not isinstance(value, dict):
            raise TypeError("no input")
        return value

    def _inside(self, name: str) -> Found:
        """The call of an element: parameters in elements of their own, or an object."""
        has_object = self._text[self._at :].lstrip().startswith("{")
        if has_object:
            self._at = self._text.index("{", self._at)
        given = self._object() if has_object else self._pairs(name)
        end = _element_end(self._text, self._at)
        if end is None:
            raise ValueError("an element without its end")
        self._at = end.end()
        return iter([(name, given)])

    def _pairs(self, name: str) -> JSONObject:
        found: JSONObject = {}
        while pair := _pair(self._text, self._at):
            key = pair["name"] or pair["key"]
            value = pair["value"] if pair["key"] is None else pair["arg"]
            found[key] = _typed(value.removeprefix("\n").removesuffix("\n"), _declared(self._tools.get(name), key))
            self._at = pair.end()
        return found

    def _rest(self) -> str:
        """The text up to the mark that closes it, or to its end."""
        closing = self._open[-1] if self._open else "<|"
        end = self._text.find(closing, self._at)
        start, self._at = self._at, len(self._text) if end < 0 else end
        return self._text[start : self._at]

    def _python(self) -> Found:
        """Calls as Python writes them: each by itself, or in a list."""
        for line in ast.parse(self._rest().strip()).body:
            value = line.value if isinstance(line, ast.Expr) else None
            for call in value.elts if isinstance(value, ast.List) else [value]:
                if isinstance(call, ast.Dict):
                    yield from _of_json(load(dump(ast.literal_eval(call))), is_marked=self._is_marked)
                else:
                    yield _of_python(call)


def _of_python(call: ast.expr | None) -> tuple[str, JSONObject]:
    if not isinstance(call, ast.Call) or call.args or not all(keyword.arg for keyword in call.keywords):
        raise TypeError("no call")
    name = call.func
    if isinstance(name, ast.Attribute) and name.attr == "call":  # as Llama calls tools of its own
        name = name.value
    given = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    return ast.unparse(name), load(dump(given))


def _of_json(written: JSONValue, *, is_marked: bool) -> Found:
    """The calls of one value: an object, or a list of them."""
    if isinstance(written, dict) and written.keys() == {"tool_calls"}:
        written = written["tool_calls"]
    for call in written if isinstance(written, list) else [written]:
        if not isinstance(call, dict):
            raise TypeError("no call")
        inner = {**call, **call["function"]} if isinstance(call.get("function"), dict) else call
        given = inner.get("arguments", inner.get("parameters", {} if is_marked else None))
        given = load(given) if isinstance(given, str) else given
        if not isinstance(given, dict) or not inner.keys() - {"function"} <= _KEYS:
            raise TypeError("no call")
        yield str(inner.get("name") or inner.get("tool_name")), given


def _declared(schema: JSONObject | None, name: str) -> set[str]:
    """The types that a parameter may have."""
    properties = (schema or {}).get("properties")
    declared = properties.get(name) if isinstance(properties, dict) else None
    if not isinstance(declared, dict):
        return set()
    ways = [declared, *(declared.get("anyOf") or declared.get("oneOf") or ())]
    kinds = [way.get("type") for way in ways if isinstance(way, dict)]
    return {each for kind in kinds for each in (kind if isinstance(kind, list) else [kind]) if isinstance(each, str)}


def _typed(text: str, types: set[str]) -> JSONValue:
    """The value of a parameter that is written without quotes."""
    if text.strip() in ("null", "None") and "null" in types:
        return None
    if "string" in types or (not types and text.lstrip()[:1] not in ("{", "[")):
        return text
    word = text.strip()
    try:
        return load(word.lower() if word in ("True", "False") else word)
    except ValueError:
        return text
