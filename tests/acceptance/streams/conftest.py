"""Servers of these tests."""

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from chat.streams.logs.log import close_logs
from tests.acceptance.streams.servers import KillableRedis, Producer


@pytest.fixture
def make_redis() -> Iterator[Callable[..., KillableRedis]]:
    running: list[KillableRedis] = []

    def make(*, persists: bool) -> KillableRedis:
        running.append(KillableRedis(persists=persists))
        return running[-1]

    yield make
    for server in running:
        server.close()


@pytest.fixture
def make_producer() -> Iterator[Callable[..., Producer]]:
    running: list[Producer] = []

    def make(*arguments: object, **options: object) -> Producer:
        running.append(Producer(*arguments, **options))  # type: ignore[arg-type]  # named in Producer
        return running[-1]

    yield make
    for producer in running:
        producer.kill()


@pytest.fixture(autouse=True)
async def _logs_closed() -> AsyncIterator[None]:
    yield
    await close_logs()
