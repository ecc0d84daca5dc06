"""System checks of tools that run elsewhere."""

from django.core import checks

from chat.durable_tools import declared


@checks.register("chat")
def check_executors(**_: object) -> list[checks.CheckMessage]:
    """E010 an implementation that is missing, surplus or wrong; W002 a tool that this process asks for and has not.

    W002 names what no process has run lately, either; where the database cannot be asked, nothing.
    """
    found: list[checks.CheckMessage] = [checks.Error(problem, id="chat.E010") for problem in declared.problems()]
    for member in sorted(declared.asked_for - set(declared.members())):
        message = f"No executor has the tool {member!r}, which is asked for: its calls wait."
        hint = "Start a process whose `executors.py` has it (docs/howto/durable-tools.md)."
        found.append(checks.Warning(message, hint=hint, id="chat.W002"))
    return found
