"""Lines of a script with which the scripted model calls a tool."""

import json
from typing import Any


def call_line(name: str, call_id: str, **arguments: Any) -> str:
    """The line of one call."""
    return f"call tool {name} {json.dumps(arguments)} id={call_id}\n"
