"""Tokens that tools take of each call, for each tool and for typical agents, by the product's own counter.

python -m bench.tokens
"""

import asyncio
import os
from collections.abc import Mapping

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings_test")
django.setup()

from bench.rig import Options  # noqa: E402 - after the set-up
from bench.rows import Row, table  # noqa: E402 - after the set-up
from bench.sessions import database  # noqa: E402 - after the set-up
from bench.typical_agents import TYPICAL  # noqa: E402 - after the set-up
from chat.agent.base import InstanceKey  # noqa: E402 - after the set-up
from chat.instance.instance import make_agent  # noqa: E402 - after the set-up
from chat.instances.rows import ensure_instance  # noqa: E402 - after the set-up
from chat.reads.preview import Preview, preview  # noqa: E402 - after the set-up
from thinkproject.kernel.aio import db  # noqa: E402 - after the set-up

MOST_FOR_CODE = 900
MOST_FOR_ALL = 3_000


async def first_call(agent: str) -> Preview:
    """The first call of a new conversation with an agent."""
    key = InstanceKey(owner_id=None, agent=agent, name="bench")
    instance = await db(ensure_instance, key)
    return await preview(key, str(instance.session_id), make_agent)


async def sizes() -> list[Row]:
    """A row for each typical agent, and one for each tool of the largest."""
    found = {agent: await first_call(agent) for agent in TYPICAL}
    whole = found["sized-whole"]
    agents = [
        Row(
            what=f"first call: {TYPICAL[agent]}, {len(seen.tools)} tools",
            unit="tokens",
            median=seen.total_tokens,
            goal=MOST_FOR_ALL if seen is whole else None,
        )
        for agent, seen in found.items()
    ]
    tools = [
        Row(
            what=f"- {tool.name}",
            unit="tokens",
            median=tool.tokens,
            goal=MOST_FOR_CODE if tool.name == "execute" else None,
        )
        for tool in whole.tools
    ]
    return [*agents, *saved(found), *tools]


def saved(found: Mapping[str, Preview]) -> list[Row]:
    """What `execute` saves of each call where an agent has thirty tools of others, with their results left aside."""
    declared = found["sized-thirty-declared"].total_tokens
    return [
        Row(
            what=f"saved of each call of 30 tools: {TYPICAL[agent]}",
            unit="tokens",
            median=declared - found[agent].total_tokens,
        )
        for agent in ("sized-thirty", "sized-thirty-coded")
    ]


def run(_options: Options) -> list[Row]:
    """Measure; returns the table's rows. Sizes do not differ from run to run."""
    with database():
        return asyncio.run(sizes())


if __name__ == "__main__":
    print(table([("Tokens of tools", run(Options()))]))
