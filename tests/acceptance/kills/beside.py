"""What is looked up beside the product. Runs within it, called by a `Hand`."""

from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.core.cache import cache

from chat.agent.base import InstanceKey
from chat.instance.handle import AgentHandle
from chat.instances.rows import key_of
from chat.instances.workspaces import InstanceWorkspace
from chat.models import AgentInstance, Turn
from tools_app.models import Execution, ToolCallRecord
from tools_app.models.extensions import Extension
from tools_app.workspace.turn_files import changed_in_turn, compared


def held(name: str) -> Any:
    """What an agent left when it began to wait; nothing before."""
    return cache.get(name)


def files(room: str) -> dict[str, str]:
    """The files of a conversation."""
    instance = AgentInstance.objects.get(name=room)

    async def read() -> dict[str, str]:
        workspace = InstanceWorkspace(key_of(instance), instance_id=instance.pk)
        paths = [entry.path for entry in await workspace.glob("/**/*")]
        return {path: await workspace.read_file(path) or "" for path in paths}

    return async_to_sync(read)()


def changes(room: str) -> list[list[Any]]:
    """What the newest turn of a conversation did to files."""
    turn = Turn.objects.filter(instance__name=room).order_by("-id")[0]
    return [[each.path, each.kind, each.before] for each in compared(changed_in_turn(turn.pk, limit=100))]


def calls(room: str) -> list[list[Any]]:
    """The calls of a conversation: tool, attempt, output."""
    turns = Turn.objects.filter(instance__name=room).values("pk")
    rows = ToolCallRecord.objects.filter(turn_id__in=turns).order_by("created_at", "pk")
    return [[row.tool_name, row.attempt, row.output] for row in rows]


SLOW = """({ tools: { work: { execute: async ({}, host) => {
  if (await host.readFile("/begun") === null) {
    await host.writeFile("/begun", "yes");
    for (;;) await new Promise((ok) => setTimeout(ok, 50));
  }
  await host.writeFile("/ended", "yes");
  return "worked";
} } } })"""


def load(room: str) -> list[str]:
    """Load an extension for a conversation; gives its tools. Its tool never ends the first time."""
    owner = get_user_model().objects.get(username="alice")
    key = InstanceKey(owner_id=owner.pk, agent="extended", name=room)
    manifest = {"name": "slow", "version": "1", "permissions": {"workspace": "read-write"}}
    loaded = async_to_sync(AgentHandle(key).load_extension)(manifest, SLOW)
    return list(loaded["tools"])


def extensions(room: str) -> list[list[Any]]:
    """The extensions of a conversation, each with what it called."""
    instance = AgentInstance.objects.get(name=room)
    rows = Extension.objects.filter(scope=instance.pk).order_by("pk")
    return [[row.name, [[each.method, each.subject] for each in row.calls.order_by("pk")]] for row in rows]


def executions(room: str) -> list[list[Any]]:
    """The code of a conversation: its status, and the calls it made with their attempts."""
    turns = Turn.objects.filter(instance__name=room).values("pk")
    rows = Execution.objects.filter(turn_id__in=turns).order_by("pk")
    return [[row.status, [[each.name, each.attempt] for each in row.calls.order_by("ordinal")]] for row in rows]
