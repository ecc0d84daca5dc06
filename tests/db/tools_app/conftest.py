"""A workspace in the database."""

import pytest
from django.contrib.auth.models import User

from tools_app.workspace import services
from tools_app.workspace.stores.database import DatabaseWorkspace


@pytest.fixture
def database_workspace(transactional_db: None, alice: User) -> DatabaseWorkspace:
    """Alice's."""
    return services.open_for_scope("ins_1", alice.pk)
