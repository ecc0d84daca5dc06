"""The function of the lab."""

from chat.think import ToolContext
from chat.tools.durable import create_tool_execution_effect
from tests.chaos.durable.agents import weigh, write


def weigh_here(what: str, context: ToolContext) -> str:
    """Write it down under the key of the call: may run again."""
    write(what, context.idempotency_key)
    return f"weighed {what}"


create_tool_execution_effect([weigh], {"weigh": weigh_here}, executor="lab")
