"""Tokens of a prompt that a provider's cache serves, and those that are read anew: under each policy, in one run.

Twenty turns of five kinds of conversations, as turns make their requests. A request is read from a cache as far as it
begins like the one before it; after an hour without one there is no cache. Tokens are estimated from characters: the
policies are compared, and no provider's count is claimed. Nothing here depends on the machine.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, cast

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings")
django.setup()

from bench.rig import Options  # noqa: E402 - after the set-up
from bench.rows import Row  # noqa: E402 - after the set-up
from chat.core.context.context_policy import CACHE_AWARE, COLD_SECONDS, READ_TIME, ContextPolicy  # noqa: E402 - after the set-up
from chat.core.model.language_model import LanguageModel  # noqa: E402 - after the set-up
from chat.turns.execution.prompting import Prompt  # noqa: E402 - after the set-up
from sessions_app.core.compaction.tokens import CHARS_PER_TOKEN  # noqa: E402 - after the set-up
from sessions_app.core.messages.shapes import Message, Part  # noqa: E402 - after the set-up

TURNS: Final = 20
HEAD: Final = "You are a helpful assistant. " * 240
"""Instructions and tools, 1,700 tokens, as a small agent has them."""

POLICIES: Final[dict[str, ContextPolicy]] = {"in every turn": READ_TIME, "in steps": CACHE_AWARE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of conversation: what each turn's calls give, in characters, one step each; and when it pauses."""

    name: str
    outputs: tuple[int, ...] = ()
    question: int = 80
    answer: int = 600
    pause_every: int = 0
    pause_seconds: int = 7_200


KINDS: Final = (
    Kind(name="talk", question=200, answer=1_500),
    Kind(name="look-ups", outputs=(2_500,)),
    Kind(name="research", outputs=(8_000, 8_000)),
    Kind(name="code", outputs=(300, 6_000, 1_200, 400, 3_000, 900), answer=1_000),
    Kind(name="look-ups with pauses", outputs=(2_500,), pause_every=4),
)


class _Unasked:
    """A model of unknown limits that is never asked."""

    name = "bench/unknown"
    accepts_images = accepts_documents = False


@dataclass(slots=True)
class Tally:
    """Characters that were sent, and those of them that a cache would have served."""

    sent: int = 0
    cached: int = 0
    _before: str = ""

    def add(self, request: str, *, is_cold: bool) -> None:
        """Count a request."""
        self.sent += len(request)
        self.cached += 0 if is_cold else shared(self._before, request)
        self._before = request


def shared(one: str, other: str) -> int:
    """The number of characters that two texts have in common at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def question_of(kind: Kind, turn: int) -> Message:
    """The user's message of a turn."""
    text = _text(f"question {turn}", kind.question)
    message: Message = {"id": f"u{turn}", "role": "user", "parts": [{"type": "text", "text": text}]}
    if kind.pause_every and turn and turn % kind.pause_every == 0:
        message["parts"][0]["pauseSeconds"] = kind.pause_seconds
    return message


def answers_of(kind: Kind, turn: int) -> Iterator[Message]:
    """The answer as each of the turn's model calls finds it, nothing first; last as it is stored."""
    parts: list[Part] = []
    for number, chars in enumerate(kind.outputs):
        yield {"id": f"a{turn}", "role": "assistant", "parts": list(parts)}
        call = {
            "type": "tool-look",
            "toolCallId": f"call_{turn}_{number}",
            "state": "output-available",
            "input": {"page": number},
            "output": _text(f"page {turn}.{number}", chars),
        }
        parts += [{"type": "step-start"}, cast("Part", call)]
    yield {"id": f"a{turn}", "role": "assistant", "parts": list(parts)}
    parts += [{"type": "step-start"}, {"type": "text", "text": _text(f"answer {turn}", kind.answer)}]
    yield {"id": f"a{turn}", "role": "assistant", "parts": parts}


def _text(beginning: str, chars: int) -> str:
    return (beginning + " and so on" * (chars // 10 + 1))[:chars]


def tally(kind: Kind, policy: ContextPolicy, turns: int) -> Tally:
    """Count the requests of a conversation."""
    counted = Tally()
    history: list[Message] = []
    for turn in range(turns):
        question = question_of(kind, turn)
        history.append(question)
        prompt = Prompt(list(history), cast("LanguageModel", _Unasked()), files={}, policy=policy, reads=_everything)
        is_cold = question["parts"][0].get("pauseSeconds", 0) >= COLD_SECONDS
        *found, stored = answers_of(kind, turn)
        for answer in found:
            counted.add(HEAD + "\n".join(map(repr, prompt(answer))), is_cold=is_cold)
            is_cold = False
        history.append(stored)
    return counted


def _everything(history: list[Message], said: Sequence[Message] = ()) -> list[Message]:
    return [*history, *said]


def run(options: Options) -> list[Row]:
    """Count every kind under every policy; returns the table's rows."""
    turns = 6 if options.is_smoke else TURNS
    rows: list[Row] = []
    for kind in KINDS:
        for name, policy in POLICIES.items():
            counted = tally(kind, policy, turns)
            what = f"{kind.name}, {turns} turns, cut {name}"
            rows += [
                Row(what=f"{what}: sent", unit="tokens", median=counted.sent / CHARS_PER_TOKEN),
                Row(what="- from the cache", unit="tokens", median=counted.cached / CHARS_PER_TOKEN),
                Row(what="- read anew", unit="tokens", median=(counted.sent - counted.cached) / CHARS_PER_TOKEN),
            ]
    return rows
