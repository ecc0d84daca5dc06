"""A provider that answers from a script: for tests, documentation and benchmarks, never shown to users.

It takes the request it receives seriously: the answer is a function of the conversation, a continuation continues.
"""

from chat.llm.scripted.handle import ScriptedServer
from chat.llm.scripted.model import ScriptedModel
from chat.llm.scripted.plan import Defaults
from chat.llm.scripted.server import ServerOptions

__all__ = ["Defaults", "ScriptedModel", "ScriptedServer", "ServerOptions"]
