"""What the log says of slips in a developer's code, for the tests of them."""

import logging

import pytest

NEUTRAL = "The agent is set up wrongly. The server's log says how."
"""What people read of a slip."""


def sentences(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The sentences for the developer, in order."""
    prefix = "the agent's code gave what cannot be used: "
    messages = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    return [message.removeprefix(prefix) for message in messages if message.startswith(prefix)]
