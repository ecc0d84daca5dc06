"""Findings of a probe: one for each ability, read off the answers, in the words of the page of providers.

A finding is made where something was seen. Everything else is "not found out", with the reason. Pure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from chat.core.model.abilities import Ability
from chat.errors import ContextOverflow, ModelError, ModelRejected, SchemaRefused
from chat.llm.adapters.redaction import redact_text
from chat.llm.adapters.refusals import read_refusal
from chat.llm.adapters.rejections import NO_TOOLS
from chat.llm.model_memory import Learned
from chat.llm.probing.answers import Answer
from chat.llm.probing.questions import COLOUR, SCHEMA, WORD
from thinkproject.kernel.jsonvalue import load
from tools_app.core.schema_check import problems

NOT_FOUND: Final = "not found out"
QUOTED: Final = 160
"""Characters that are quoted of an answer or of a refusal."""

_LONG_ENOUGH: Final = 40  # characters: a shorter text may well come in one piece
_COUNTED_SHARE: Final = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding. `found`: what is remembered, `None` for nothing. `cell`: as in the table. `why`: for people."""

    ability: Ability
    cell: str = NOT_FOUND
    found: bool | None = None
    why: str = ""


def declared(ability: Ability, value: bool) -> Finding:
    """The settings decide it, and it was not asked."""
    return Finding(ability=ability, cell="yes" if value else "no", why="declared in the settings; not asked")


def on_stream(answer: Answer) -> Finding:
    """Whether an answer comes in pieces."""
    ability, count = Ability.STREAM, len(answer.pieces)
    if count > 1:
        return Finding(ability=ability, cell="yes", found=True, why=f"{count} pieces in {answer.seconds:.1f} s")
    if len(answer.text) >= _LONG_ENOUGH:
        return Finding(ability=ability, cell="in one piece", found=False, why=_said(answer))
    return Finding(ability=ability, why=_failure(answer) or f"the answer was too short: {_said(answer)}")


def on_tools(answer: Answer, learned: Learned) -> Finding:
    """Whether the model calls tools."""
    ability = Ability.TOOLS
    if answer.calls:
        return Finding(ability=ability, cell="yes", found=True, why="it called the tool")
    is_refused = isinstance(answer.error, ModelRejected) or bool(learned.refused_tools)
    if is_refused or any(NO_TOOLS.pattern.search(words) for words in answer.refusals):
        return Finding(ability=ability, cell="no", found=False, why=_refused(answer))
    return Finding(ability=ability, why=_failure(answer) or f"it answered without a call: {_said(answer)}")


def on_parallel(answer: Answer) -> Finding:
    """Whether it makes several calls at once."""
    ability = Ability.PARALLEL
    if answer.calls > 1:
        return Finding(ability=ability, cell="yes", found=True, why=f"{answer.calls} calls in one answer")
    why = "it made one call where two were asked for" if answer.calls else "it made no call"
    return Finding(ability=ability, why=why)


def on_medium(ability: Ability, answer: Answer, *, is_refused: bool) -> Finding:
    """Whether a picture or a document was read: nothing else names what is in it."""
    if is_refused or isinstance(answer.error, ModelRejected):
        return Finding(ability=ability, cell="no", found=False, why=_refused(answer))
    is_read = COLOUR.search(answer.text) if ability is Ability.IMAGES else WORD in answer.text.lower()
    if is_read:
        return Finding(ability=ability, cell="yes", found=True, why=_said(answer))
    taken = "it was taken, and the answer does not show that it was read"
    return Finding(ability=ability, why=_failure(answer) or f"{taken}: {_said(answer)}")


def on_reasoning(answers: Sequence[Answer]) -> Finding:
    """Whether reasoning is shown, or at least counted."""
    ability, given = Ability.REASONING, [answer for answer in answers if answer.events]
    if any(answer.has_reasoning for answer in given):
        return Finding(ability=ability, cell="yes", found=True, why="it showed some")
    counted = max((answer.usage.reasoning_tokens for answer in given), default=0)
    if counted:
        return Finding(ability=ability, cell="counted", found=True, why=f"{counted} tokens, not shown")
    return Finding(ability=ability, why=f"none in {len(given)} answers" if given else "")


def on_returns(fields: Iterable[str], full: Answer | None, bare: Answer | None, learned: Learned) -> Finding:
    """The fields of an answer that go back with its calls; `bare`: the answer to a request without them."""
    ability, names = Ability.RETURNS, sorted(set(fields))
    if full is None:
        return Finding(ability=ability, why="there was no call whose result could go back")
    if full.error is not None:
        return Finding(ability=ability, why=f"the results of its calls were not taken: {_failure(full)}")
    if not names:
        return Finding(ability=ability, cell="nothing", found=False, why="its answer has no data of its own")
    is_demanded = bare is not None and (bool({"signature", "reasoning"} & set(learned.demands)) or _is_refused(bare))
    if bare is None or (not is_demanded and bare.error is not None):
        word, why = "", "it was not found out whether they may be missing"
    else:
        word = ", demanded" if is_demanded else ", taken"
        why = _refused(bare) if is_demanded else "a request without them was taken too"
    return Finding(ability=ability, cell="; ".join(f"`{name}`{word}" for name in names), found=True, why=why)


def on_usage(answers: Sequence[Answer]) -> Finding:
    """The counts that came with the answers."""
    ability, given = Ability.USAGE, [answer for answer in answers if answer.error is None and answer.events]
    names = {"input": "input_tokens", "output": "output_tokens", "reasoning": "reasoning_tokens"}
    names["cached"] = "cached_tokens"
    counted = [word for word, name in names.items() if any(getattr(answer.usage, name) for answer in given)]
    if counted:
        return Finding(ability=ability, cell=", ".join(counted), found=True, why=f"in {len(given)} answers")
    if given:
        return Finding(ability=ability, cell="none", found=False, why="no answer had any")
    return Finding(ability=ability)


def on_schema(answer: Answer) -> Finding:
    """Whether an answer follows a schema of which its question says nothing."""
    ability = Ability.SCHEMA
    if isinstance(answer.error, SchemaRefused):
        return Finding(ability=ability, cell="no", found=False, why=_refused(answer))
    if answer.error is not None or answer.is_cut or not answer.text:
        return Finding(ability=ability, why=_failure(answer) or "the answer was cut")
    try:
        broken = problems(load(answer.text), SCHEMA)
    except ValueError:
        broken = ["no JSON"]
    if broken:
        return Finding(ability=ability, cell="passed over", found=False, why=_said(answer))
    return Finding(ability=ability, cell="yes", found=True, why=_said(answer))


def on_overflow(answer: Answer, words: int, learned: Learned) -> Finding:
    """The way in which a request is refused that is too large. `words`: of it, each one token at least."""
    ability = Ability.OVERFLOW
    if isinstance(answer.error, ContextOverflow):
        limit = f"; its limit: {learned.context_tokens:,} tokens" if learned.context_tokens else ""
        return Finding(ability=ability, cell="yes", found=True, why=f"{_refused(answer)}{limit}")
    if isinstance(answer.error, ModelRejected):
        return Finding(ability=ability, cell="in unknown words", found=False, why=_refused(answer))
    read = counted_of_cut(answer, words)
    if read:
        return Finding(ability=ability, cell="cuts silently", found=False, why=f"it read {read:,} of {words:,} words")
    return Finding(ability=ability, why=_failure(answer) or f"it took {words:,} words")


def counted_of_cut(answer: Answer, words: int) -> int:
    """The tokens that were read of a request of so many words, where that is too few; else 0."""
    read = answer.usage.input_tokens
    return read if answer.error is None and 0 < read < words * _COUNTED_SHARE else 0


def quoted(text: str) -> str:
    """Words of others, on one line, without anything like a credential."""
    line = " ".join(redact_text(text).split())
    return f"“{line[:QUOTED]}…”" if len(line) > QUOTED else f"“{line}”"


def _is_refused(answer: Answer) -> bool:
    return isinstance(answer.error, ModelRejected)


def _said(answer: Answer) -> str:
    return quoted(answer.text)


def _refused(answer: Answer) -> str:
    """The words of the refusal, or what we say about it."""
    text = next((read_refusal(words).text for words in answer.refusals if words), "")
    words = max(text.splitlines(), key=len, default="")  # codes and kinds stand beside the sentence
    return f"refused: {quoted(words)}" if words else _failure(answer)


def _failure(answer: Answer) -> str:
    """The reason why there is no answer; empty where there is one."""
    error: ModelError | None = answer.error
    return "" if error is None else error.message
