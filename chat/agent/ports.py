"""The instance behind an agent, by its type: its services, by topic, are what agents and handles call.

Methods of `Think` and `AgentHandle` are documented in `chat/agent/methods`. At run time the name is nothing: agents are
imported without a database, and `chat.instance`, which is above, hands them the object.
"""

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from chat.instance.instance import Instance

    InstancePort: TypeAlias = Instance
else:
    InstancePort = Any
