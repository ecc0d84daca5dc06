"""Schedules of a conversation: the methods of agents and handles, and what a class declares about them.

await self.schedule(3600, "remind", {"about": "tea"})                        # once, in an hour
await self.schedule("0 9 * * 1-5", prompt="Plan my day.", zone="Europe/Berlin")
await self.schedule_every(600, "poll")
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, TypeAlias

from chat.agent.ports import InstancePort
from chat.agent.values.schedules import (
    MAX_ATTEMPTS,
    MAX_PROMPT,
    MAX_RETRY_SECONDS,
    Callback,
    ScheduleCriteria,
    ScheduleView,
    When,
    Work,
)
from fibers.core.schedules.timing import ScheduleKind, Timing
from fibers.errors import ScheduleInvalid
from thinkproject.kernel.jsonvalue import JSONValue
from thinkproject.kernel.phrases import Phrase
from thinkproject.kernel.retry import RetryPolicy


class ScheduleMethods:
    """Scheduling work of this conversation. See `docs/howto/schedules.md`."""

    instance: InstancePort

    async def schedule(  # noqa: PLR0913 - one keyword for each thing a caller may decide
        self,
        when: When,
        callback: Callback | None = None,
        payload: JSONValue = None,
        *,
        prompt: str = "",
        retry: RetryPolicy | None = None,
        idempotent: bool | None = None,
        zone: str = "",
        title: str = "",
    ) -> ScheduleView:
        """Run a method of this agent, or ask it with a prompt, later: in so many seconds, at an instant, or by cron.

        The method is called with `(payload, occurrence)`, or as many of these as it takes; a prompt becomes an ordinary
        turn. `idempotent`: the same times, callback and payload again return what is there; by default for cron only.
        `zone`: of cron and of naive instants, which are refused without one. `retry`: how often a method that raises is
        tried within one run.
        Durability: stored when this returns; runs at least once, late rather than never. What was missed runs once.
        Errors: `ScheduleInvalid`, `SchedulesFull`.
        """
        timing = timing_of(when, zone)
        work = self._work(callback, prompt, payload, retry)
        is_once = timing.kind is ScheduleKind.CRON if idempotent is None else idempotent
        return await self.instance.schedules.add(timing, work, is_once=is_once, title=title)

    async def schedule_every(  # noqa: PLR0913 - as above
        self,
        seconds: float,
        callback: Callback | None = None,
        payload: JSONValue = None,
        *,
        prompt: str = "",
        retry: RetryPolicy | None = None,
        idempotent: bool = True,
        title: str = "",
        max_run_seconds: int | None = None,
    ) -> ScheduleView:
        """Run a method or a prompt every so many seconds, at most 30 days, first after as many.

        While a run goes on the next is left out; one that takes longer than `max_run_seconds` is stopped for it.
        Otherwise as `schedule`.
        """
        work = self._work(callback, prompt, payload, retry)
        return await self.instance.schedules.add(
            Timing.every(seconds), work, is_once=idempotent, title=title, max_run_seconds=max_run_seconds
        )

    async def get_schedule(self, schedule_id: str) -> ScheduleView | None:
        """Read a schedule of this conversation; `None` for one that is unknown or has ended."""
        return next((each for each in await self.instance.schedules.list_all() if each.id == schedule_id), None)

    async def get_schedules(self, criteria: ScheduleCriteria | None = None) -> list[ScheduleView]:
        """Read the schedules of this conversation that have not ended, the next one first."""
        found = await self.instance.schedules.list_all()
        return found if criteria is None else [each for each in found if _meets(each, criteria)]

    async def cancel_schedule(self, schedule_id: str) -> bool:
        """Delete a schedule of this conversation; false where there is none. A run that goes on is not stopped."""
        return await self.instance.schedules.remove(schedule_id)

    def _work(self, callback: Callback | None, prompt: str, payload: JSONValue, retry: RetryPolicy | None) -> Work:
        if (callback is None) == (not prompt.strip()):
            raise ScheduleInvalid("A schedule has a method or a prompt, one of the two.")
        if callback is None:
            if payload is not None or retry is not None:
                raise ScheduleInvalid("A payload and retries belong to a method, not to a prompt.")
            return Work(prompt=checked_prompt(prompt))
        name = callback if isinstance(callback, str) else getattr(callback, "__name__", "")
        self.instance.schedules.check_method(name)
        if retry is not None:
            check_retry(retry)
        return Work(callback=name, payload=payload, retry=retry)


class ScheduleDeclarations(ScheduleMethods):
    """Part of `Think`: declarations of a class about schedules."""

    schedule_tools: ClassVar[bool] = False
    """Whether the model gets tools to list, create and cancel schedules of this conversation. A person approves what it
    creates."""

    def get_scheduled_tasks(self) -> Any:
        """Declare the tasks that every conversation with this agent has, by name.

        Shape: `{"digest": {"schedule": "every weekday at 09:00 in Europe/Berlin", "prompt": "..."}}`. Instead of the
        prompt, `"handler"`: a method of the agent or its name, which is called with the `Occurrence`.
        Runs whenever the agent starts. A declaration that changed is stored anew, one that is gone vanishes. One that
        cannot be read is listed as broken, and everything else goes on. May be sync or async.
        """
        return {}


def timing_of(when: When, zone: str = "") -> Timing:
    """Read a time as `schedule` takes it. Errors: `ScheduleInvalid`."""
    if isinstance(when, datetime):
        return Timing.at(when, zone)
    return Timing.cron(when, zone) if isinstance(when, str) else Timing.delay(when)


def check_method(agent: type[Any], name: str) -> None:
    """Errors: `ScheduleInvalid` for what is no public method of the class."""
    if not name or name.startswith("_") or not callable(getattr(agent, name, None)):
        raise ScheduleInvalid(Phrase("{agent} has no method “{name}” to schedule.", agent=agent.__name__, name=name))


def check_retry(retry: RetryPolicy) -> None:
    """Errors: `ScheduleInvalid` for a policy that tries too often or waits for too long."""
    is_possible = 1 <= retry.attempts <= MAX_ATTEMPTS and 0 < retry.first_seconds <= retry.max_seconds
    if not is_possible or retry.max_seconds > MAX_RETRY_SECONDS:
        raise ScheduleInvalid(
            Phrase(
                "A run is tried 1 to {attempts} times, with at most {seconds} seconds between.",
                attempts=MAX_ATTEMPTS,
                seconds=MAX_RETRY_SECONDS,
            )
        )


def checked_prompt(prompt: str) -> str:
    """The text of a prompt without space around it. Errors: `ScheduleInvalid` for an empty or long one."""
    text = prompt.strip()
    if not text or len(text) > MAX_PROMPT or "\0" in text:
        raise ScheduleInvalid(Phrase("A prompt has 1 to {limit} characters.", limit=MAX_PROMPT))
    return text


def _meets(view: ScheduleView, criteria: ScheduleCriteria) -> bool:
    if criteria.kind is not None and view.kind != criteria.kind:
        return False
    if criteria.callback is not None and view.callback != criteria.callback:
        return False
    if criteria.start is None and criteria.end is None:
        return True
    if view.next_at is None:
        return False
    return (criteria.start is None or view.next_at >= criteria.start) and (
        criteria.end is None or view.next_at <= criteria.end
    )


Tasks: TypeAlias = Mapping[str, Mapping[str, Any]] | Sequence[Mapping[str, Any]]
"""What `get_scheduled_tasks` gives: by name, or a list whose entries have a `name`."""
