"""A deploy under load: web servers and workers are restarted one after another while conversations stream.

What each client read is compared with what the provider says it sent: nothing lost, nothing doubled, and no client was
sent an error.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable

import pytest

from chat.client import ChatClient
from chat.llm.scripted.handle import answer_in
from tests.acceptance.client.people import client
from tests.acceptance.product import UNLIMITED, Process, Product, wait_for

CLIENTS = 6
WORDS = 60
STOP_SECONDS = 5.0
SECONDS = 150


class Talker:
    """One client that asks again and again; `said` is what it read, by the marker of what it asked."""

    def __init__(self, number: int, chat: ChatClient) -> None:
        self.chat = chat
        self.said: dict[str, str] = {}
        self._number = number
        self._is_over = False
        self.has_begun = asyncio.Event()

    async def talk(self) -> None:
        while not self._is_over:
            marker = f"deploy-{self._number}-{len(self.said)}"
            turn = await self.chat.send(f"marker: {marker}\nstream {WORDS} words at 20/s")
            said = ""
            async for text in turn.texts():
                said += text
                self.has_begun.set()
            self.said[marker] = said
            assert await turn.message() == self.chat.messages[-1]
            assert self.said[marker] == turn.text

    def stop(self) -> None:
        """Ask nothing new."""
        self._is_over = True


def restart(process: Process, is_there: Callable[[], bool]) -> float:
    """End a process as an operator does, start it again, wait until it serves. Returns how long it took to end."""
    begun = time.monotonic()
    code = process.stop()
    took = time.monotonic() - begun
    assert code == 0, f"{process.name} ended with {code}:\n{process.log[-3000:]}"
    process.start()
    wait_for(is_there, what=f"{process.name} being there")
    return took


def deploy(product: Product) -> dict[str, float]:
    """Restart everything that runs our code, one after another. Returns how long each took to end (seconds)."""
    took = {}
    for web in product.webs:
        took[web.name] = restart(web, lambda web=web: product.answers(web))  # type: ignore[misc]  # bound at once
    for worker in product.workers:
        starts = worker.log.count(" ready.")
        took[worker.name] = restart(worker, lambda worker=worker, n=starts: worker.log.count(" ready.") > n)  # type: ignore[misc]  # as above
    return took


@pytest.mark.timeout(2 * SECONDS)
async def test_deploy_under_load(make_product: Callable[..., Product], capsys: pytest.CaptureFixture[str]) -> None:
    product = make_product(webs=2, workers=2, is_proxied=True, environ=UNLIMITED)
    assert product.proxy is not None
    talkers = [Talker(number, client(product, f"deploy-{number}")) for number in range(CLIENTS)]
    async with asyncio.timeout(SECONDS):
        for talker in talkers:
            await talker.chat.__aenter__()
        try:
            async with asyncio.TaskGroup() as group:
                for talker in talkers:
                    group.create_task(talker.talk())
                for talker in talkers:
                    await talker.has_begun.wait()
                took = await asyncio.to_thread(deploy, product)
                for talker in talkers:
                    talker.stop()
            accepted = product.proxy.accepted
            for talker in talkers:
                assert talker.chat.messages == await talker.chat.get_messages()
        finally:
            await asyncio.gather(*(talker.chat.close() for talker in talkers))
    log = [json.loads(line) for line in product.provider_log.read_text(encoding="utf-8").splitlines()]
    said = {marker: text for talker in talkers for marker, text in talker.said.items()}
    assert said == {marker: answer_in(log, marker) for marker in said}
    assert all(len(text.split()) == WORDS for text in said.values())
    assert len(said) > CLIENTS
    assert accepted >= 2 * CLIENTS, "not everybody had to come back: the deploy tested nothing"
    with capsys.disabled():
        ends = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in took.items())
        sys.stdout.write(f"\ndeploy: {len(said)} answers, {accepted} connections; SIGTERM to exit: {ends}\n")
    assert max(took.values()) < 2 * STOP_SECONDS  # the machine may be slow; one that hangs takes fifteen
