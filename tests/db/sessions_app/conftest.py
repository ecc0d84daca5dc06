"""What tests of stored conversations share."""

from collections.abc import Callable

import pytest

from sessions_app.messages import selectors
from sessions_app.models import Message, Session

Ids = Callable[[str], list[str]]


@pytest.fixture
def path() -> Ids:
    """Give the ids of a session's shown path, root first."""
    return lambda session_id: [message.id for message in selectors.path_page(session_id, limit=500).messages]


@pytest.fixture
def change_seq() -> Callable[[str], int]:
    """Give a session's change number."""
    return lambda session_id: Session.objects.values_list("change_seq", flat=True).get(pk=session_id)


@pytest.fixture
def stamped() -> Callable[[str], dict[str, int]]:
    """Give the change numbers of a session's own messages."""
    return lambda session_id: dict(
        Message.objects.filter(session_id=session_id).values_list("message_id", "change_seq")
    )
