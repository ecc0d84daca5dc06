"""Messages that are commands: `/name words` of the class's templates, `!script` of a person.

What is stored is what the model reads, so every client shows the same; the metadata name the command. The calls that go
before the answer are options of the turn (`chat/turns/execution/opening.py`).
"""

from functools import partial
from typing import Final

from chat.agent.think import Think
from chat.core.commands import SUMMARISE_TEXT, Command, fill, typed_command
from chat.models import TurnOptions
from chat.turns import policies
from chat.turns.admission.intake import Intake, Program, with_new_messages
from sessions_app.core.messages.messages import StoredMessage
from sessions_app.core.messages.shapes import NewMessage
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject

COMMAND: Final = "command"
"""In the metadata of a message that was a command: its `name` and `arguments`."""

_SCRIPT_OF: Final = {"run_command": "command"}  # the argument of a tool that takes the script; `script` of others


def with_command(agent: type[Think], intake: Intake, via: str) -> tuple[Intake, TurnOptions]:
    """The intake with a command's template in the command's place, and the options of its turn.

    What a model has another agent do is no command, and what code or a program says by itself is no script.
    """
    options: TurnOptions = {}
    if not (agent.commands or agent.user_shell) or policies.is_delegated():
        return intake, options
    is_typed = not isinstance(intake, Program) or intake.is_typed
    take = partial(_taken, agent, options, takes_scripts=via != "mcp" and is_typed)
    return with_new_messages(intake, take)[0], options


def _taken(
    agent: type[Think], options: TurnOptions, message: NewMessage, *, takes_scripts: bool
) -> tuple[NewMessage, list[str]]:
    at, text = _text_of(message)
    if agent.user_shell and takes_scripts and text.startswith("!") and text[1:].strip():
        options["direct_call"] = {"tool": agent.user_shell, "input": _script(agent.user_shell, text[1:].strip())}
        return message, []
    found = typed_command(text, agent.commands)
    if found is None:
        return message, []
    command, arguments = found
    filled = fill(command, arguments)
    if filled.scripts or command.agent or command.model:
        options["opening"] = _opening(command, filled.text, filled.scripts)
    parts = [*message["parts"]]
    parts[at] = {**parts[at], "text": filled.text}
    metadata = {**(message.get("metadata") or {}), COMMAND: {"name": command.name, "arguments": arguments}}
    return {**message, "parts": parts, "metadata": metadata}, []


def written_text(message: StoredMessage) -> str:
    """The text that a person wrote: of a message that was a command, the command."""
    command = (message.metadata or {}).get(COMMAND)
    if isinstance(command, dict):
        return f"/{command.get('name')} {command.get('arguments')}".strip()
    return "\n".join(str(part.get("text", "")) for part in message.parts if part.get("type") == "text")


def begins_by_itself(options: TurnOptions) -> bool:
    """Whether a turn has a beginning of its own, so that no other one may answer its message."""
    return "opening" in options or "direct_call" in options


def _text_of(message: NewMessage) -> tuple[int, str]:
    """The place and the text of a message with one text; an empty text for any other."""
    parts = message.get("parts") or []
    texts = [at for at, part in enumerate(parts) if part.get("type") == "text"]
    text = parts[texts[0]].get("text") if len(texts) == 1 else None
    return (texts[0], text.strip()) if isinstance(text, str) else (0, "")


def _opening(command: Command, text: str, scripts: tuple[str, ...]) -> JSONObject:
    calls = [_call(command.shell, _script(command.shell, script)) for script in scripts]
    if command.agent:
        calls.append(_call(command.agent, {"task": text}))
    return {"calls": calls, "then": SUMMARISE_TEXT if command.agent else "", "model": command.model}


def _call(tool: str, arguments: JSONObject) -> JSONObject:
    return {"call_id": new_id("call"), "tool_name": tool, "input": arguments}


def _script(tool: str, script: str) -> JSONObject:
    return {_SCRIPT_OF.get(tool, "script"): script}
