"""A probe: a model is asked a few small questions at its own address, and what they show is remembered.

It asks with a memory of its own, so that nothing that is known of the model decides what is sent, and no lesson of a
question that is meant to fail is kept by accident. `remember` then adds what was found to the memory of all processes.
"""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from chat.core.model.abilities import Ability
from chat.core.model.language_model import ModelEvent, ModelRequest, Usage
from chat.core.model.prices import cost_of
from chat.errors import AnswerFailed, ModelAuth, ModelError, ModelNotConfigured, NetworkLost, RateLimited, StreamStalled
from chat.llm.abilities import MEDIA, declared_of
from chat.llm.adapters.redaction import redact_text
from chat.llm.model_memory import Learned, ModelMemory, model_memory
from chat.llm.probing import findings, questions
from chat.llm.probing.answers import Answer, extra_fields, stored_answer
from chat.llm.probing.findings import Finding
from chat.llm.registry import apart, endpoint_of, facts_of, inquire_of
from thinkproject.kernel.jsonvalue import JSONObject

SECONDS: Final = 60.0
OVERFLOW_TOKENS: Final = 10_000
_BEYOND: Final = 1.2
_MAX_EVENTS: Final = 4 * questions.ANSWER_TOKENS
_SPENT: Final = 402
_ENDING: Final = (ModelAuth, NetworkLost, ModelNotConfigured, RateLimited)
"""Errors after which asking on tells nothing, or is impolite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The findings of a probe in the order of `Ability`. `problem`: why it ended early, empty when it did not.

    `questions` and `requests` count what was asked and sent; `learned`: lessons and findings, to be remembered.
    """

    name: str
    address: str
    findings: tuple[Finding, ...]
    questions: int
    requests: int
    problem: str
    learned: Learned

    @property
    def has_answered(self) -> bool:
        """Whether anything was found out."""
        return any(finding.found is not None for finding in self.findings)


def announcement(name: str, *, seconds: float, overflow_tokens: int) -> str:
    """The questions of a probe of this model and their cost at most, for people."""
    read, written = questions.most_tokens(overflow_tokens)
    price = facts_of(name).price
    used = Usage(input_tokens=read, output_tokens=written)
    cost = "the price is not known" if price is None else f"${cost_of(used, price):.2f} by its list price"
    return (
        f"Up to {questions.ASKED} questions, each for {seconds:g} s and {questions.ANSWER_TOKENS:,} tokens at most: "
        f"all of them {read:,} tokens in and {written:,} out ({cost}). What is refused "
        "may be sent once more without what was refused."
    )


def address_of(name: str) -> str:
    """The address of a model without credentials in it. Errors: `ModelNotConfigured`."""
    place = urlsplit(apart(name, ModelMemory(is_shared=False), lambda _words: None).base_url)
    return f"{place.scheme}://{place.hostname}{f':{place.port}' if place.port else ''}{place.path}"


async def probe(name: str, *, seconds: float = SECONDS, overflow_tokens: int = OVERFLOW_TOKENS) -> Report:
    """Ask the model `provider/model` and report. Errors: `ModelNotConfigured`; all others are in the report.

    `seconds`: the limit of each question. `overflow_tokens`: of the one large request, 0 for none.
    """
    await inquire_of([name])
    return await _Probe(name, seconds).run(overflow_tokens)


async def remember(report: Report) -> None:
    """Add what was found to the memory of all processes. What was not found out this time stays as it was."""
    model = apart(report.name, model_memory, lambda _words: None)
    new = report.learned

    def merged(known: Learned) -> Learned:
        contexts = [tokens for tokens in (known.context_tokens, new.context_tokens) if tokens]
        read = {medium for medium, ability in MEDIA.items() if new.abilities.get(ability)}
        return replace(
            known,
            abilities={**known.abilities, **new.abilities},
            context_tokens=min(contexts, default=0),
            cuts_silently=known.cuts_silently or new.cuts_silently,
            left_out=tuple(dict.fromkeys((*known.left_out, *new.left_out))),
            renamed={**known.renamed, **new.renamed},
            demands=tuple(sorted({*known.demands, *new.demands})),
            refused_inputs=tuple(sorted({*known.refused_inputs, *new.refused_inputs} - read)),
        )

    await model_memory.learn(model.base_url, model.model, merged)


class _Probe:
    """One probe of one model."""

    def __init__(self, name: str, seconds: float) -> None:
        self._name = name
        self._seconds = seconds
        self._memory = ModelMemory(is_shared=False)
        self._refusals: list[str] = []
        self._model = apart(name, self._memory, self._refusals.append)
        endpoint = endpoint_of(name)
        assert endpoint is not None  # the model has one
        self._endpoint = endpoint
        self._answers: list[Answer] = []
        self._requests = 0
        self._problem = ""

    async def run(self, overflow_tokens: int) -> Report:
        """Ask everything that is not declared, until an answer shows that there is no point."""
        media = {ability.value: True for ability in MEDIA.values()}  # sent whatever the list or a report says of them
        await self._memory.learn(self._model.base_url, self._model.model, lambda known: replace(known, abilities=media))
        plain = await self._ask(questions.plain())
        if plain.error is not None and not isinstance(plain.error, AnswerFailed):
            self._problem = plain.error.message
        found = [findings.on_stream(plain), *await self._tools()]
        for medium, ability in MEDIA.items():
            found.append(await self._medium(ability, medium))
        schema = await self._ask(questions.with_schema())
        found.append(findings.on_schema(schema) if self._is_given(schema) else self._unasked(Ability.SCHEMA))
        overflow, learned = await self._overflow(overflow_tokens)
        given = [answer for answer in self._answers if self._is_given(answer)]
        found += [findings.on_reasoning(given), findings.on_usage(given), overflow]
        return Report(
            name=self._name,
            address=address_of(self._name),
            findings=tuple(sorted(map(self._clean, found), key=lambda one: list(Ability).index(one.ability))),
            questions=len(given),
            requests=self._requests,
            problem=self._problem,
            learned=replace(learned, abilities={f.ability.value: f.found for f in found if f.found is not None}),
        )

    async def _tools(self) -> list[Finding]:
        said = declared_of(Ability.TOOLS, self._endpoint)
        if said is False:
            none = Finding(ability=Ability.RETURNS, why="no tools are sent")
            return [*(findings.declared(ability, False) for ability in (Ability.TOOLS, Ability.PARALLEL)), none]
        answer = await self._ask(questions.with_tools())
        if not self._is_given(answer):
            return [self._unasked(ability) for ability in (Ability.TOOLS, Ability.PARALLEL, Ability.RETURNS)]
        tools = findings.on_tools(answer, self._known)
        return [
            findings.declared(Ability.TOOLS, True) if said else tools,
            findings.on_parallel(answer),
            await self._returns(answer),
        ]

    async def _returns(self, answer: Answer) -> Finding:
        """Send the results of the calls, as the product does, and once without the data that came with them."""
        if not answer.calls:
            return findings.on_returns((), None, None, self._known)
        stored = stored_answer(answer.events)
        request = questions.with_results(stored)
        body = self._model.describe(request)
        fields = list(extra_fields(_answers_in(body.get("messages") or body["input"])))
        full = await self._ask(request)
        has_bare = bool(fields) and full.error is None
        bare = await self._ask(questions.with_results(stored, without_data=True)) if has_bare else None
        if not self._is_given(full):
            return self._unasked(Ability.RETURNS)
        is_known = bare is not None and self._is_given(bare)
        return findings.on_returns(fields, full, bare if is_known else None, self._known)

    async def _medium(self, ability: Ability, medium: str) -> Finding:
        said = declared_of(ability, self._endpoint)
        if said is not None:
            return findings.declared(ability, said)
        is_picture = ability is Ability.IMAGES
        answer = await self._ask(questions.with_picture() if is_picture else questions.with_document())
        if not self._is_given(answer):
            return self._unasked(ability)
        return findings.on_medium(ability, answer, is_refused=medium in self._known.refused_inputs)

    async def _overflow(self, most: int) -> tuple[Finding, Learned]:
        """Send more than the window holds, where that is not more than is allowed."""
        learned = self._known
        context = facts_of(self._name).limits.context_tokens
        words = int(context * _BEYOND) if context else most
        if not most:
            return Finding(ability=Ability.OVERFLOW, why="left out by --overflow-tokens"), learned
        if words > most:
            why = f"its window of {context:,} tokens is larger than --overflow-tokens ({most:,})"
            return Finding(ability=Ability.OVERFLOW, why=why), learned
        answer = await self._ask(questions.larger_than(words))
        if not self._is_given(answer):
            return self._unasked(Ability.OVERFLOW), learned
        if isinstance(answer.error, ModelError) or not (cut := findings.counted_of_cut(answer, words)):
            learned = replace(learned, context_tokens=self._known.context_tokens)
        else:
            learned = replace(learned, context_tokens=cut, cuts_silently=True)
        return findings.on_overflow(answer, words, learned), learned

    async def _ask(self, request: ModelRequest) -> Answer:
        """One question with its time limit; an empty answer once there is no point in asking. Never raises."""
        if self._problem:
            return Answer()
        self._refusals.clear()
        events: list[ModelEvent] = []
        error: ModelError | None = None
        began = time.monotonic()
        try:
            async with (
                asyncio.timeout(self._seconds),
                contextlib.aclosing(self._model.stream(request)) as stream,
            ):
                async for event in stream:
                    events.append(event)
                    if len(events) > _MAX_EVENTS:
                        break
        except TimeoutError:
            error = StreamStalled(f"it did not end within {self._seconds:g} s")
        except ModelError as failed:
            error = failed
        answer = Answer(
            events=tuple(events), error=error, refusals=tuple(self._refusals), seconds=time.monotonic() - began
        )
        self._requests += max(1, len(self._refusals))
        self._note(answer)
        return answer

    def _note(self, answer: Answer) -> None:
        """Keep an answer, and notice after which one there is no point in asking on."""
        error = answer.error
        stalls = [one for one in (*self._answers, answer) if isinstance(one.error, StreamStalled)]
        is_end = isinstance(error, _ENDING) or (error is not None and error.data.get("status") == _SPENT)
        if error is not None and (is_end or len(stalls) > 1):
            self._problem = error.message
        self._answers.append(answer)

    def _is_given(self, answer: Answer) -> bool:
        return any(answer is one for one in self._answers)

    def _unasked(self, ability: Ability) -> Finding:
        return Finding(ability=ability, why="not asked")

    def _clean(self, finding: Finding) -> Finding:
        """The finding without what the settings keep secret."""
        return replace(finding, why=redact_text(finding.why, secrets=self._endpoint.secrets))

    @property
    def _known(self) -> Learned:
        return self._memory.of(self._model.base_url, self._model.model)


def _answers_in(messages: Sequence[JSONObject]) -> list[JSONObject]:
    """The messages of the model in a body of either wire."""
    kinds = ("reasoning", "function_call")
    return [item for item in messages if item.get("role") == "assistant" or item.get("type") in kinds]
