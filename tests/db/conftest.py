"""People who may do everything, for tests that need a database; and agents whose names mean one class."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from chat.agent.registry import clashes


def pytest_collection_finish() -> None:
    """Refuse two agents of one route name: the one that is imported first would answer for both, in some orders."""
    found = [f"{name}: {first.__module__}, {second.__module__}" for name, first, second in clashes()]
    if found:
        raise pytest.UsageError(f"Agents of tests that have one name: {'; '.join(found)}")


@pytest.fixture
def root(client: Client) -> User:
    """A superuser, whom `client` is signed in as."""
    user = User.objects.create_superuser("root")
    client.force_login(user)
    return user
