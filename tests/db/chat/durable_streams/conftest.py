"""A program of Alice's and one of Bob's."""

import pytest
from django.contrib.auth.models import User

from tests.db.chat.durable_streams.client import Program


@pytest.fixture
async def her_program(alice: User) -> Program:
    return await Program(alice).sign_in()


@pytest.fixture
async def his_program(bob: User) -> Program:
    return await Program(bob).sign_in()
