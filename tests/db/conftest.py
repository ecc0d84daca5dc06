"""People who may do everything, for tests that need a database."""

import pytest
from django.contrib.auth.models import User
from django.test import Client


@pytest.fixture
def root(client: Client) -> User:
    """A superuser, whom `client` is signed in as."""
    user = User.objects.create_superuser("root")
    client.force_login(user)
    return user
