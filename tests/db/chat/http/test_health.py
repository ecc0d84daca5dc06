"""Live says that the process answers, ready that it can serve."""

import asyncio
import threading
import time
from typing import Any

import pytest
import redis
from django.test import Client

from chat.http.health import WORKER_KEY, note_worker
from tests.workers_seen import seen_worker
from thinkproject.kernel import threads
from thinkproject.kernel.aio import call_tool_code


def test_live_looks_at_nothing(settings: Any) -> None:
    settings.REDIS_URL = "unix:///nowhere.sock"
    reply = Client().get("/health/live")
    assert (reply.status_code, reply.json()) == (200, {"status": "ok"})
    assert "no-store" in reply["Cache-Control"]


@pytest.mark.django_db
def test_ready_needs_a_worker_that_was_seen(redis_url: str) -> None:
    reply = Client().get("/health/ready")
    assert (reply.status_code, reply.json()["parts"]["worker"]) == (503, "never seen")
    with seen_worker(redis_url):
        reply = Client().get("/health/ready")
        assert (reply.status_code, reply.json()["parts"]) == (200, {"database": "ok", "redis": "ok", "worker": "ok"})
        with redis.Redis.from_url(redis_url) as client:
            client.set(WORKER_KEY, repr(time.time() - 60))
        reply = Client().get("/health/ready")
        assert (reply.status_code, reply.json()["parts"]["worker"]) == (503, "silent")


@pytest.mark.django_db
def test_it_is_not_ready_once_the_last_worker_has_left(redis_url: str) -> None:
    with seen_worker(redis_url):
        with seen_worker(redis_url):
            pass
        assert Client().get("/health/ready").status_code == 200
    reply = Client().get("/health/ready")
    assert (reply.status_code, reply.json()["parts"]["worker"]) == (503, "gone")


@pytest.mark.django_db
async def test_a_worker_without_free_threads_is_busy_and_ready(settings: Any, redis_url: str) -> None:
    settings.THINK_TOOL_THREADS = 1
    gate, started = threading.Event(), threading.Event()

    def hang() -> bool:
        started.set()
        return gate.wait(30)

    hanging = asyncio.create_task(call_tool_code(hang))
    try:
        await asyncio.to_thread(started.wait, 10)
        assert threads.tools.is_saturated
        with seen_worker(redis_url):
            reply = await asyncio.to_thread(Client().get, "/health/ready")
        assert (reply.status_code, reply.json()["parts"]["worker"]) == (200, "busy")
    finally:
        gate.set()
        await hanging


@pytest.mark.django_db
def test_without_redis_it_is_reported_and_does_not_hang(settings: Any) -> None:
    settings.REDIS_URL = "unix:///nowhere.sock"
    began = time.monotonic()
    reply = Client().get("/health/ready")
    assert (reply.status_code, reply.json()["parts"]) == (
        503,
        {"database": "ok", "redis": "unreachable", "worker": "unknown"},
    )
    assert time.monotonic() - began < 5
    note_worker()  # and a worker survives it
