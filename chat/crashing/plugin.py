"""The pytest plugin: the fixture `crash_everywhere`. Imports nothing of Django before a test asks for it."""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from chat.crashing.everywhere import CrashEverywhere


@pytest.fixture
def crash_everywhere(transactional_db: None, settings: Any) -> "CrashEverywhere":  # noqa: ARG001 - pytest-django's
    """Kill the worker of a scripted conversation at every point; see `docs/howto/test-your-agent.md`.

    Brings pytest-django's `transactional_db`, and settings under which no Redis, no worker and no limit is in the way.
    """
    from chat.crashing.everywhere import CrashEverywhere  # noqa: PLC0415 - settings are there only now
    from chat.testing import think_test_settings  # noqa: PLC0415 - as above

    for name, value in think_test_settings.items():
        setattr(settings, name, value)
    for name in ("THINK_TURNS_PER_MINUTE", "THINK_MESSAGES_PER_MINUTE"):
        setattr(settings, name, 0)
    return CrashEverywhere()
