"""Crash a developer's conversation at every point, and compare what comes of it with an undisturbed one.

    async def test_refunds_survive(crash_everywhere):
        await crash_everywhere(SupportDesk, 'call tool refund {"order": "A-1"}', "Refund A-1.", effects=shop.refunds)

The fixture comes with the package (`chat.crashing.plugin`). Crashes are simulated in this process: the lease stays
behind as a dead process leaves it, no further write of the attempt counts, and recovery is that of a real worker.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from django.apps import apps
from django.contrib.auth import get_user_model
from django.core import mail
from typing_extensions import Unpack

from chat.agent.base import Agent
from chat.core.model.language_model import LanguageModel
from chat.crashing.outcome import CrashOutcome, differences
from chat.crashing.points import Course, Point, chosen
from chat.crashing.runs import Act, CrashPlay, played, scripted
from chat.testing import refuse_memory_database
from thinkproject.kernel.jsonvalue import JSONValue

PLAYS = 3
OURS = frozenset({"think_chat", "think_fibers", "think_sessions", "think_tools"})
ADVICE = (
    "A tool whose worker dies before its result is recorded runs again. Hand `context.idempotency_key` to the system "
    "that it calls, or make it an action (`@action(key=...)`), or declare `@tool(reruns=False)`: then it is reported "
    "as interrupted instead. Hooks run again in each attempt; what they do needs a key as well. "
    "docs/howto/test-your-agent.md has an example of each."
)


class CrashOptions(TypedDict, total=False):
    """Options of a played conversation.

    Shape: `effects` gives all effects that the world outside has seen so far, one item each; without it rows of your
    own models and sent mails count. `approve` decides every question that is asked (True). `client_results` answers
    calls of client tools, by the name of the tool; `waits` those of `context.wait`, by kind or key. `model` makes a
    model for each run, in the place of the script; `user` makes a user of this name for each. With `pairs` the worker
    dies a second time, at each point of what follows the first crash. `part` divides one test among several: of
    `(2, 5)` every fifth point is taken, from the third. Units: `seconds` for one run (30).
    """

    model: Callable[[], LanguageModel]
    effects: Callable[[], Iterable[Any]]
    approve: bool
    client_results: Mapping[str, JSONValue]
    waits: Mapping[str, JSONValue]
    user: Callable[[str], Any]
    pairs: bool
    part: tuple[int, int]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashes:
    """The crashes that were survived. `points`: where the worker died, one tuple of one or two points for each run."""

    points: tuple[tuple[Point, ...], ...]


class CrashEverywhere:
    """The fixture `crash_everywhere`: call it with an agent, a script and messages."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    async def __call__(
        self, agent_class: type[Agent], script: str = "", *messages: Act, **options: Unpack[CrashOptions]
    ) -> Crashes:
        """Play the conversation undisturbed, then with a crash at each point; return where it was crashed.

        Shape: `messages` are texts, messages, or async functions that get the `AgentHandle`; without one the script is
        the message. Errors: `AssertionError`, with what differed at which crash and what to do.
        """
        refuse_memory_database()
        play = CrashPlay(
            agent_class=agent_class,
            make_model=options.get("model") or scripted(script),
            acts=messages or (script,),
            effects=options.get("effects") or seen_in_django,
            make_user=options.get("user") or _make_user,
            approve=options.get("approve", True),
            client_results=options.get("client_results", {}),
            waits=options.get("waits", {}),
            seconds=options.get("seconds", 30.0),
        )
        number, parts = options.get("part", (0, 1))
        if not 0 <= number < parts:
            raise ValueError(f"part {number} of {parts}: the first is 0")
        return await self._crash(play, pairs=options.get("pairs", False), taken=slice(number, None, parts))

    def run(
        self, agent_class: type[Agent], script: str = "", *messages: Act, **options: Unpack[CrashOptions]
    ) -> Crashes:
        """Do the same from a test that is no coroutine, where no plugin for those is installed."""
        return asyncio.run(self(agent_class, script, *messages, **options))

    async def _crash(self, play: CrashPlay, *, pairs: bool, taken: slice) -> Crashes:
        right, course = await self._undisturbed(play)
        problems: list[str] = []
        done: list[tuple[Point, ...]] = []
        for point in chosen(course.passed)[taken]:
            after = await self._run(play, right, (point,), problems)
            done.append((point,))
            for second in chosen(after) if pairs else ():
                await self._run(play, right, (point, second), problems)
                done.append((point, second))
        if problems:
            raise AssertionError(_report(play, problems, len(done)))
        return Crashes(points=tuple(done))

    async def _undisturbed(self, play: CrashPlay) -> tuple[CrashOutcome, Course]:
        """Play it twice: what differs without a crash would be blamed on crashes."""
        course, again = Course(), Course()
        right = await played(play, course, self._name())
        other = await played(play, again, self._name())
        lines = differences(right, other, may_cut=False)
        if lines:
            raise AssertionError(
                "Two undisturbed runs of this conversation differ, so crashes cannot be judged. Times, random numbers "
                "and what earlier runs left behind must be the same in each run:\n" + _indented(lines)
            )
        if not course.passed:
            raise AssertionError("No turn was run: nothing could be crashed.")
        return right, course

    async def _run(
        self, play: CrashPlay, right: CrashOutcome, deaths: tuple[Point, ...], problems: list[str]
    ) -> list[Point]:
        """Play it with these crashes; returns the points that come after the last of them.

        The points behind the last commit are not always passed before the play is over: it is played again then.
        """
        for _ in range(PLAYS):
            course, lines = await self._play_once(play, right, deaths)
            if lines or len(course.died) == len(deaths):
                break
        if len(course.died) < len(deaths):
            lines = [f"It never came by {deaths[len(course.died)]}.", *lines]
        if lines:
            where = " and then ".join(str(point) for point in deaths)
            problems.append(f"The worker died {where}:\n{_indented(lines)}")
        return course.passed_since_death

    async def _play_once(
        self, play: CrashPlay, right: CrashOutcome, deaths: tuple[Point, ...]
    ) -> tuple[Course, list[str]]:
        course = Course(deaths)
        try:
            found = await played(play, course, self._name())
        except TimeoutError:
            return course, [f"It did not come to an end within {play.seconds:g} s."]
        lines = differences(right, found, may_cut=course.may_cut)
        return course, lines + (_more_runs(right, found) if lines else [])

    def _name(self) -> str:
        return f"crash-{next(self._numbers)}"


def seen_in_django() -> Iterable[str]:
    """Rows of the project's own models, and mails that were sent, as Django's tests keep them."""
    for model in apps.get_models():
        label = model._meta.app_label
        if label not in OURS and not model.__module__.startswith("django.") and model is not get_user_model():
            yield from [f"a row of {model._meta.label}"] * model._base_manager.count()
    yield from (f"a mail {message.subject!r} to {message.to}" for message in getattr(mail, "outbox", ()))


def _make_user(name: str) -> Any:
    users = get_user_model()
    named: dict[str, Any] = {users.USERNAME_FIELD: f"think-test-{name}"}
    return users.objects.get_or_create(**named)[0]


def _more_runs(right: CrashOutcome, found: CrashOutcome) -> list[str]:
    more = {name: count for name, count in found.tool_runs.items() if count > right.tool_runs[name]}
    return [f"Tool {name!r} ran {count} times, undisturbed {right.tool_runs[name]}." for name, count in more.items()]


def _report(play: CrashPlay, problems: list[str], count: int) -> str:
    head = f"{len(problems)} of {count} crashes changed the outcome of {play.agent_class.__name__}."
    return "\n\n".join([head, *problems, ADVICE])


def _indented(lines: Iterable[str]) -> str:
    return "\n".join(f"  {line}" for line in lines)
