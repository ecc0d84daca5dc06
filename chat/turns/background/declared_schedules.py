"""The tasks that classes declare (`get_scheduled_tasks`), kept in step with the table of schedules.

Reading costs agents that declare nothing nothing at all, the others one query when they start. A declaration that
cannot be read becomes a row that is broken and says why: people see it, and nothing else is held up.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from chat.agent.base import InstanceKey
from chat.agent.methods.schedules import check_method, checked_prompt
from chat.agent.think import Think
from chat.core.durable_names import SCHEDULED_FIBER
from chat.errors import TurnConfigInvalid
from chat.models import AgentInstance
from chat.user_code.call_hook import call_hook, is_overridden, logged
from fibers.core.schedules.grammar import parse_sentence
from fibers.core.schedules.states import ScheduleStatus
from fibers.core.schedules.timing import ScheduleKind, Timing
from fibers.errors import ScheduleInvalid
from fibers.models.schedules import Schedule
from fibers.schedules import services
from fibers.schedules.services import ScheduleDraft
from thinkproject.kernel.aio import db
from thinkproject.kernel.described import described
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.phrases import Phrase

logger = logging.getLogger(__name__)

METHOD: Final = "get_scheduled_tasks"
DECLARED: Final = "declaration"
MAX_NAME: Final = 100
_KEYS: Final = {"name", "schedule", "prompt", "handler", "title"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTask:
    """One declaration, read; `error` says why it could not be."""

    name: str
    title: str = ""
    timing: Timing | None = None
    prompt: str = ""
    handler: Any = None
    error: str = ""

    def payload(self, instance_id: str) -> JSONObject:
        """The input of its runs. What a handler is is asked anew by each."""
        work: JSONObject = {"prompt": self.prompt} if self.prompt else {"task": self.name}
        return {"instance_id": instance_id, **work}


async def declared_tasks(agent: Think) -> dict[str, DeclaredTask]:
    """Read what an agent declares, by name. Never raises: where the method fails there is one broken task."""
    try:
        declared = await call_hook(agent, METHOD)
        entries = list(_entries(declared))
    except ThinkError as error:
        if isinstance(error, TurnConfigInvalid):
            logged(error, type(agent))
        return {METHOD: DeclaredTask(name=METHOD, title=METHOD, error=f"{METHOD}(): {error.message}")}
    tasks: dict[str, DeclaredTask] = {}
    for name, entry in entries:
        if name in tasks:
            text = str(Phrase("Two tasks are called “{name}”.", name=name))
            tasks[name] = DeclaredTask(name=name, title=name, error=text)
            continue
        tasks[name] = _read(type(agent), name, entry)
    return tasks


def _entries(declared: Any) -> Iterator[tuple[str, Any]]:
    """Names and entries. Errors: `TurnConfigInvalid` for another shape."""
    if isinstance(declared, Mapping):
        yield from ((str(name)[:MAX_NAME], entry) for name, entry in declared.items())
        return
    for entry in declared or ():
        if not isinstance(entry, Mapping) or not entry.get("name"):
            raise TurnConfigInvalid(f"{METHOD}(): a task in a list is a mapping with a name, not {described(entry)}.")
        yield str(entry["name"])[:MAX_NAME], entry


def _read(agent: type[Think], name: str, entry: Any) -> DeclaredTask:
    try:
        if not isinstance(entry, Mapping) or set(entry) - _KEYS:
            raise ScheduleInvalid("A task has a schedule, and a prompt or a handler.")
        prompt, handler = entry.get("prompt"), entry.get("handler")
        if (prompt is None) == (handler is None):
            raise ScheduleInvalid("A task has a prompt or a handler, one of the two.")
        if isinstance(handler, str):
            check_method(agent, handler)
        elif handler is not None and not callable(handler):
            raise ScheduleInvalid("A handler is a method or the name of one.")
        timing = parse_sentence(str(entry.get("schedule", "")))
        text = "" if prompt is None else checked_prompt(str(prompt))
        return DeclaredTask(
            name=name, title=str(entry.get("title") or name), timing=timing, prompt=text, handler=handler
        )
    except ScheduleInvalid as error:
        return DeclaredTask(name=name, title=name, error=error.message)


async def reconcile(agent: Think) -> None:
    """Bring the schedules of an agent's conversation in step with what its class declares. Never raises a `ThinkError`.

    **Concurrency:** any number at once: names are unique, and what is not different is not written.
    """
    tasks = await declared_tasks(agent)
    try:
        await db(_store, agent.key, tasks)
    except ThinkError as error:  # for instance, the owner has too many schedules already
        logger.warning("tasks not stored", extra={"action": "tasks_not_stored", "code": error.code})


async def reconcile_if_declared(agent: Think) -> None:
    """The same for a class that declares tasks; nothing, and no query, for others."""
    if agent.key.instance_id and is_overridden(agent, METHOD):
        await reconcile(agent)


def _store(key: InstanceKey, tasks: Mapping[str, DeclaredTask]) -> None:
    instance_id = key.instance_id
    rows = {
        row.declaration: row
        for row in Schedule.objects.filter(scope=instance_id, declaration__isnull=False).order_by("pk")
    }
    has_failed = METHOD in tasks and bool(tasks[METHOD].error)
    for name, row in rows.items():
        if name not in tasks and not has_failed:  # while the method fails, what it declared before goes on
            services.cancel_schedule(row.pk)
    for name, task in tasks.items():
        known = rows.get(name)
        if known is not None and not _differs(known, task, instance_id):
            continue
        if known is not None and task.timing is not None and known.status != ScheduleStatus.BROKEN:
            services.edit_schedule(
                known.pk, task.timing, payload=task.payload(instance_id), title=task.title[:MAX_NAME]
            )
            continue
        if known is not None:
            services.cancel_schedule(known.pk)
        _create(key, task)


def _differs(row: Schedule, task: DeclaredTask, instance_id: str) -> bool:
    if task.timing is None:
        return row.status != ScheduleStatus.BROKEN or row.error != task.error
    if row.status == ScheduleStatus.BROKEN:
        return True
    facts = (row.timing, row.payload, row.title)
    return facts != (task.timing, task.payload(instance_id), task.title[:MAX_NAME])


def _create(key: InstanceKey, task: DeclaredTask) -> None:
    instance_id = key.instance_id
    if AgentInstance.objects.filter(pk=instance_id, is_temporary=True).exists():
        return  # it has none: they would keep it from ending
    _schedule, is_new = services.create_schedule(
        ScheduleDraft(
            scope=instance_id,
            owner_id=key.owner_id,
            timing=task.timing or Timing(kind=ScheduleKind.CRON, spec=""),
            function=f"{SCHEDULED_FIBER}:{key.agent}",
            payload=task.payload(instance_id),
            title=task.title[:MAX_NAME],
            created_by=DECLARED,
            declaration=task.name,
            is_once=True,
            identity={"declared": task.name},
            error=task.error,
        )
    )
    if task.error and is_new:
        extra = {"action": "task_declared_wrongly", "task": task.name, "instance_id": instance_id}
        logger.warning("a declared task cannot be read", extra=extra)
