"""The code of `docs/howto/coding-agent-threads.md` does what the page says."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.agent import declared
from chat.agent.base import InstanceKey
from chat.llm.registry import replaced_models
from chat.llm.scripted import ScriptedModel
from chat.think import ThreadsHandle
from fibers.testing import run_until_idle
from sessions_app.public.manager import SessionManager
from thinkproject.kernel.aio import db

PAGE = Path(__file__).parents[4] / "docs" / "howto" / "coding-agent-threads.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def page_names(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The names of all blocks, executed as one module; every model is a scripted one."""
    monkeypatch.setattr(declared, "classes", {})  # agents of other tests have some of these names
    names: dict[str, Any] = {"__name__": __name__}
    with replaced_models(ScriptedModel()):
        for block in BLOCKS:
            exec(compile(block, str(PAGE), "exec"), names)
        yield names


async def test_the_threads_of_the_page_answer(page_names: dict[str, Any], alice: User) -> None:
    key = InstanceKey(owner_id=alice.pk, agent="coders", name="mine")
    thread_id = await page_names["ask"](key, "say: Hello from a thread.")
    await run_until_idle()
    threads = ThreadsHandle(key, page_names["Coder"])
    assert [message["content"] for message in await threads.get_messages(thread_id)][1:] == ["Hello from a thread."]
    assert await threads.read_file("default", "/question.txt") == "say: Hello from a thread."


async def test_the_layers_of_the_page_answer(page_names: dict[str, Any], alice: User) -> None:
    asked = [{"role": "user", "parts": [{"type": "text", "text": 'call tool length {"text": "Hello"}\nsay: {result}'}]}]
    assert await page_names["count"](asked) == ("text", "5")
    session = await db(lambda: SessionManager(scope="page").create("Talk"))
    lines: list[str] = []

    async def write(line: str) -> None:
        lines.append(line)

    await page_names["talk"](session, write)
    assert len(await db(session.history)) >= 1
