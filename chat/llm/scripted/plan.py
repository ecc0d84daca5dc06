"""Compute the scripted answer to a request: a pure function of its conversation.

A request that goes on from a sealed partial answer gets the rest of the *same* answer, byte for byte; a partial that is
no beginning of that answer is answered with a loud mismatch, because then text was lost or doubled.
"""

import hashlib
import json
import random
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from chat.core.context.sent_note import NOTE
from chat.llm.scripted.asked import Asked, sample
from chat.llm.scripted.script import (
    Call,
    Cut,
    Directive,
    Echo,
    HttpError,
    Misbehave,
    Option,
    Pace,
    Play,
    Say,
    Wait,
    Words,
    parse,
)
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

GO_ON: Final = re.compile(r"left off|cut off|broke off|interrupted|where (?:you|it) stopped", re.IGNORECASE)
MISMATCH: Final = "[MISMATCH: the partial answer sent back is no beginning of the answer that was given]"
ANYTHING: Final = Asked()
_VOCABULARY: Final = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty")
_FILES_LABEL: Final = re.compile(r"\[Files that the tool [^\n]*:\]")
_PIECE: Final = re.compile(r"\S+\s*|\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptMessage:
    """A message as the planner sees it, whatever wire it came by."""

    role: str
    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()  # (call id, tool name)
    arguments: str = ""  # of the calls: what was sent is read, and counted
    call_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One chunk to send. `kind`: text, reasoning, refusal, call_start, call_arguments, call_end."""

    kind: str
    text: str = ""
    rate: float = 0.0
    pause: float = 0.0
    call_index: int = 0
    call_id: str = ""
    name: str = ""
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """An answer with its faults. `continues`: characters of text the client already has."""

    marker: str
    round: int
    units: tuple[Unit, ...]
    text: str
    continues: int = 0
    mismatch: bool = False
    errors: tuple[HttpError, ...] = ()
    cuts: tuple[Cut, ...] = ()
    lies: tuple[Misbehave, ...] = ()
    finish: str = ""
    usage: JSONObject = field(default_factory=dict)
    plays: str = ""  # the recording that is the answer
    played: tuple[str, ...] = ()  # those that answered the rounds before


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """The answer to a message without directives: `tokens` words (0: a short sentence), `rate` chunks per second."""

    tokens: int = 0
    rate: float = 0.0


def make_plan(
    system: str,
    messages: list[ScriptMessage],
    scripts: Iterable[tuple[str, str]],
    defaults: Defaults,
    asked: Asked = ANYTHING,
) -> Plan:
    """Plan the answer. `scripts` are `(match, script)`: used when the last user message contains `match`."""
    return _Planner(system, messages, list(scripts), defaults).plan(asked)


class _Planner:
    def __init__(
        self, system: str, messages: list[ScriptMessage], scripts: list[tuple[str, str]], defaults: Defaults
    ) -> None:
        self.system = system
        texts = (text for message in messages for text in (message.text, message.arguments))
        self._prompt_words = sum(map(_words, (system, *texts)))
        self.messages = _without_notes(_without_files(messages))
        self.defaults = defaults
        self.partial = self._take_partial()
        users = [message.text for message in self.messages if message.role == "user"]
        self.user_text = users[-1] if users else ""
        script = next((script for match, script in scripts if match in self.user_text), self.user_text)
        self.directives = parse(script)
        marker = next(
            (item.value for item in self.directives if isinstance(item, Option) and item.name == "marker"), ""
        )
        # A marked answer stays the same when a summary stands for a part of the conversation in the meantime.
        self.seed = hashlib.sha256((marker or "\0".join(users)).encode()).hexdigest()[:12]
        self.marker = marker or self.seed
        self.rounds, self.results = self._read_rounds()

    def plan(self, asked: Asked) -> Plan:
        directives = asked.apply(_of_round(self.directives, self.rounds))
        units = self._units(directives)
        rounds = [_of_round(self.directives, number) for number in range(self.rounds + 1)]
        plays = [next((item.name for item in found if isinstance(item, Play)), "") for found in rounds]
        is_silent = bool(plays[-1]) or Say(text="") in directives
        if not is_silent and not any(unit.kind in ("text", "refusal", "call_start") for unit in units):
            text = self._default_text() if asked.schema is None else json.dumps(sample(asked.schema))
            units += self._text_units("text", text, self.defaults.rate)
        text = "".join(unit.text for unit in units if unit.kind in ("text", "refusal"))
        mismatch = not text.startswith(self.partial)
        if mismatch:
            units = self._text_units("text", MISMATCH, 0.0)
        elif self.partial:
            units = _without_prefix(units, len(self.partial))
        options = {item.name: item.value for item in directives if isinstance(item, Option)}
        if "parallel" in options:
            units = _interleave(units)
        return Plan(
            marker=self.marker,
            round=self.rounds,
            units=tuple(units),
            text=text,
            continues=len(self.partial),
            mismatch=mismatch,
            errors=(*asked.refusal(), *(item for item in directives if isinstance(item, HttpError))),
            cuts=tuple(item for item in directives if isinstance(item, Cut)),
            lies=() if self.partial else tuple(item for item in directives if isinstance(item, Misbehave)),
            finish=options.get("finish", ""),
            usage=_usage(options.get("usage", ""), units, self._prompt_words),
            plays=plays[-1],
            played=tuple(name for name in plays[:-1] if name),
        )

    def _take_partial(self) -> str:
        """Take the go-on line and the sealed partial off the end of the messages."""
        last = self.messages[-1] if self.messages else None
        is_answered = len(self.messages) > 1 and self.messages[-2].role != "user"
        if last is not None and last.role == "user" and GO_ON.search(last.text) and is_answered:
            self.messages.pop()
            last = self.messages[-1]
        elif last is not None and last.role == "user":
            head, gap, tail = last.text.rpartition("\n\n")
            if gap and GO_ON.search(tail):
                # Nothing of the cut answer could be sent back, so the go-on line stands below the question.
                self.messages[-1] = replace(last, text=head)
        if last is not None and last.role == "assistant" and not last.calls:
            self.messages.pop()
            return last.text
        return ""

    def _read_rounds(self) -> tuple[int, list[tuple[str, str]]]:
        """Rounds of tool calls since the last user message, and the results of the last round."""
        rounds, names, results = 0, dict[str, str](), list[tuple[str, str]]()
        for message in self.messages:
            if message.role == "user":
                rounds, results = 0, []
            elif message.calls:
                rounds, results = rounds + 1, []
                names.update(message.calls)
            elif message.role == "tool":
                results.append((names.get(message.call_id, "?"), message.text))
        return rounds, results

    def _units(self, directives: list[Directive]) -> list[Unit]:
        units: list[Unit] = []
        rate, pause, calls = self.defaults.rate, 0.0, 0
        for number, item in enumerate(directives):
            made: list[Unit] = []
            match item:
                case Pace():
                    rate = item.rate
                case Wait():
                    pause += item.seconds
                case Say():
                    made = self._text_units(item.kind, self._fill(item.text), rate)
                case Words():
                    text = self._words(item.count, number)
                    made = self._text_units(item.kind, text, rate if item.rate is None else item.rate)
                case Echo():
                    made = self._text_units("text", self._echo(item.what), rate)
                case Call():
                    made = self._call_units(item, calls, rate)
                    calls += 1
                case _:
                    pass
            if made and pause:
                made[0] = replace(made[0], pause=pause)
                pause = 0.0
            units += made
        return units

    def _text_units(self, kind: str, text: str, rate: float) -> list[Unit]:
        return [Unit(kind=kind, text=piece, rate=rate) for piece in _PIECE.findall(text)]

    def _call_units(self, call: Call, index: int, rate: float) -> list[Unit]:
        explicit = next((flag[3:] for flag in call.flags if flag.startswith("id=")), "")
        digest = hashlib.sha256(f"{self.seed}/{self.rounds}/{index}".encode()).hexdigest()[:16]
        base = Unit(
            kind="call_start",
            rate=rate,
            call_index=index,
            call_id=explicit or f"call_{digest}",
            name=call.name,
            flags=call.flags,
        )
        size = len(call.arguments) if "whole" in call.flags else 8
        pieces = [call.arguments[at : at + size] for at in range(0, len(call.arguments), size)]
        if "whole" in call.flags:
            return [replace(base, text=call.arguments), replace(base, kind="call_end", text=call.arguments)]
        arguments = [replace(base, kind="call_arguments", text=piece) for piece in pieces]
        return [base, *arguments, replace(base, kind="call_end", text=call.arguments)]

    def _words(self, count: int, salt: int) -> str:
        dice = random.Random(f"{self.seed}/{self.rounds}/{salt}")  # noqa: S311 - repeatable on purpose, guards nothing
        return " ".join(f"{dice.choice(_VOCABULARY)}{number}" for number in range(count)) + (" " if count else "")

    def _default_text(self) -> str:
        if self.results:
            return " ".join(f"The tool {name} returned: {text}" for name, text in self.results)
        if self.defaults.tokens:
            return self._words(self.defaults.tokens, 0)
        quoted = " ".join(self.user_text.split())[:120]
        return f"You said: {quoted}\nHere is an answer: {self._words(12, 0).strip()}."

    def _fill(self, text: str) -> str:
        if "{result" not in text:
            return text
        results = [result for _, result in self.results]
        return text.replace("{results}", ", ".join(results)).replace("{result}", results[-1] if results else "nothing")

    def _echo(self, what: str) -> str:
        if what == "system":
            return self.system
        shown = [{"role": message.role, "text": message.text} for message in self.messages]
        return json.dumps(shown, ensure_ascii=False)


def _without_notes(messages: list[ScriptMessage]) -> list[ScriptMessage]:
    """The messages without the lines that say when they were sent: an answer depends on what a person wrote."""
    return [
        replace(message, text=NOTE.sub("", message.text)) if message.role == "user" else message for message in messages
    ]


def _without_files(messages: list[ScriptMessage]) -> list[ScriptMessage]:
    """The messages without the labels of files that tools returned, which are no words of the user's."""
    made: list[ScriptMessage] = []
    for message in messages:
        if message.role != "user" or not made or made[-1].role != "tool" or not _FILES_LABEL.match(message.text):
            made.append(message)
            continue
        pieces = [piece for piece in message.text.split("\n\n") if not _FILES_LABEL.fullmatch(piece)]
        if pieces:
            made.append(replace(message, text="\n\n".join(pieces)))
    return made


def _of_round(directives: list[Directive], wanted: int) -> list[Directive]:
    """The directives of one request: calls end a round, output that follows waits for their results.

    What goes wrong (`error`, `drop`, ...) belongs to the output before it; a pace holds until another is set.
    """
    rounds: list[list[Directive]] = [[]]
    called = False
    for item in directives:
        if called and isinstance(item, Say | Words | Echo | Pace | Wait | Play):
            paces = [pace for pace in rounds[-1] if isinstance(pace, Pace)]
            rounds.append([*paces[-1:]])
            called = False
        called = called or isinstance(item, Call | Play)
        rounds[-1].append(item)
    return rounds[wanted] if wanted < len(rounds) else []


def _without_prefix(units: list[Unit], length: int) -> list[Unit]:
    """The rest of an answer after `length` characters of text. Reasoning is not repeated."""
    rest: list[Unit] = []
    for unit in units:
        if unit.kind not in ("text", "refusal"):
            if unit.kind != "reasoning":
                rest.append(unit)
        elif length >= len(unit.text):
            length -= len(unit.text)
        else:
            rest.append(replace(unit, text=unit.text[length:]))
            length = 0
    return rest


def _interleave(units: list[Unit]) -> list[Unit]:
    """Parallel calls whose pieces alternate, as some servers stream them."""
    others = [unit for unit in units if not unit.kind.startswith("call")]
    by_call: dict[int, list[Unit]] = {}
    for unit in units:
        if unit.kind.startswith("call"):
            by_call.setdefault(unit.call_index, []).append(unit)
    mixed: list[Unit] = []
    queues = [list(queue) for queue in by_call.values()]
    while any(queues):
        mixed += [queue.pop(0) for queue in queues if queue]
    return others + mixed


def _words(text: str) -> int:
    """The words of a text. A long one is as many as a tokenizer would make of it at least.

    A count far below that looks like a server that cuts what it reads, and clients remember it of the model.
    """
    return sum(max(1, len(word) // 8) for word in text.split())


def _usage(text: str, units: list[Unit], prompt_words: int) -> JSONObject:
    """`usage: 100 20 cached 50 reasoning 5`, else counted: a word of the prompt, a chunk of the answer."""
    numbers = [int(number) for number in re.findall(r"(?<![a-z] )\b\d+", text)]
    named = {name: int(number) for name, number in re.findall(r"(cached|reasoning) (\d+)", text)}
    return {
        "input": numbers[0] if numbers else prompt_words,
        "output": numbers[1] if len(numbers) > 1 else sum(unit.kind != "call_end" for unit in units),
        "cached": named.get("cached", 0),
        "reasoning": named.get("reasoning", sum(unit.kind == "reasoning" for unit in units)),
    }


def read_chat(body: JSONObject) -> tuple[str, list[ScriptMessage]]:
    """System prompt and messages of a Chat Completions body."""
    system, messages = "", []
    for message in body.get("messages") or []:
        text = _text(message.get("content"))
        if message.get("role") in ("system", "developer"):
            system += text
            continue
        asked = message.get("tool_calls") or []
        messages.append(
            ScriptMessage(
                role=message["role"],
                text=text,
                calls=tuple((call["id"], call["function"]["name"]) for call in asked),
                arguments=" ".join(str(call["function"].get("arguments") or "") for call in asked),
                call_id=message.get("tool_call_id") or "",
            )
        )
    return system, messages


def read_responses(body: JSONObject) -> tuple[str, list[ScriptMessage]]:
    """System prompt and messages of a Responses body; text and calls of one answer come together again."""
    messages: list[ScriptMessage] = []
    source = body.get("input")
    items: list[JSONObject] = [{"role": "user", "content": source}] if isinstance(source, str) else source or []
    for item in items:
        kind = item.get("type") or "message"
        if kind == "reasoning":
            continue
        if kind == "function_call_output":
            message = ScriptMessage(role="tool", text=_text(item.get("output")), call_id=item["call_id"])
        elif kind == "function_call":
            call = (item["call_id"], item["name"])
            message = ScriptMessage(role="assistant", calls=(call,), arguments=str(item.get("arguments") or ""))
        else:
            message = ScriptMessage(role=item["role"], text=_text(item.get("content")))
        last = messages[-1] if messages else None
        if message.role == "assistant" and last is not None and last.role == "assistant":
            arguments = f"{last.arguments} {message.arguments}"
            text, calls = last.text + message.text, last.calls + message.calls
            messages[-1] = replace(last, text=text, calls=calls, arguments=arguments)
        elif message.role == "user" and last is not None and last.role == "user":
            messages[-1] = replace(last, text=f"{last.text}\n\n{message.text}")
        else:
            messages.append(message)
    return str(body.get("instructions") or ""), messages


def _text(content: JSONValue) -> str:
    if isinstance(content, list):
        texts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
        return "\n\n".join(texts)
    return content if isinstance(content, str) else ""
