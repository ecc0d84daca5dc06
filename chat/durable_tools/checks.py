"""System checks of tools that run elsewhere."""

from django.core import checks

from chat.durable_tools import declared


def check_executors(**_: object) -> list[checks.CheckMessage]:
    """E010 an implementation that is missing, surplus or wrong; W002 a tool that this process asks for and has not.

    An executor elsewhere may have it: `think_doctor` asks the database about those of the last day.
    """
    found: list[checks.CheckMessage] = [checks.Error(problem, id="chat.E010") for problem in declared.problems()]
    for member in sorted(declared.asked_for - set(declared.members())):
        message = f"This process asks for the tool {member!r} and has no function for it."
        hint = "Another process has to run it (docs/howto/durable-tools.md)."
        found.append(checks.Warning(message, hint=hint, id="chat.W002"))
    return found
