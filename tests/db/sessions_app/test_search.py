"""Search in messages: the contract that both databases keep."""

import pytest

from sessions_app.search.finding import search
from sessions_app.testing import make_session

pytestmark = pytest.mark.django_db


def found(query: str, session_id: str) -> list[str]:
    page = search(query, session_id=session_id)
    assert not page.problem
    return [hit.message_id for hit in page.hits]


def test_words_are_found_in_every_form() -> None:
    session = make_session("u: I was searching for keys", "a: They lie under the doormat")
    assert found("searched key", session.pk) == ["u1"]
