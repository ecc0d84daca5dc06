"""A turn whose model drives a real browser: what the conversation keeps, and what a crash leaves."""

import json
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import pytest

from chat.models import Attachment
from chat.think import Origin, Relaxed, Think, Tool
from chat.tools.browser import create_browser_tools
from fibers.context import current_fiber
from fibers.testing import die
from tests.chromium import require_chromium
from tests.db.chat.turns.agents.everyday import MODELS
from tests.unit.tools_app.browser.conftest import LOOPBACK, Site, serving
from thinkproject.kernel.aio import db
from thinkproject.kernel.object_storage import object_storage
from tools_app.browser.pool import pool
from tools_app.sandbox.contract import RunResult, Script
from tools_app.sandbox.deno import DenoSandbox

from .conftest import MakeRoom, Room


class Dying(DenoSandbox):
    """A sandbox whose first run loses its worker."""

    runs: ClassVar[list[str]] = []

    async def run(self, script: Script, **options: Any) -> RunResult:
        self.runs.extend(script.namespaces)
        fiber = current_fiber()
        if len(self.runs) == 1 and fiber is not None:
            die(fiber)
        return await super().run(script, **options)


class Surfer(Think):
    """Reads the pages of one server."""

    injection_guard = Relaxed(reason="its pages are those of this test", trusts=[Origin.WEB])

    allow: ClassVar[list[str]] = []

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> tuple[Tool, ...]:
        return create_browser_tools(self.allow, session="reuse", allow_private=LOOPBACK, sandbox=Dying(spare=False))


@pytest.fixture
async def shop(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    require_chromium()
    async for site in serving():
        monkeypatch.setattr(Surfer, "allow", [f"http://127.0.0.1:{site.port}"])
        yield site
    await pool().close()


async def parts(room: Room) -> list[dict[str, Any]]:
    return [dict(part) for message in await room.transcript() for part in message["parts"] if "toolCallId" in part]


async def test_letting_models_drive_a_browser(make_room: MakeRoom, shop: Site) -> None:
    url = shop.page("/shop", "<h1>Shop</h1><p id=p></p><script>p.append('three things')</script>")
    room = make_room("surfer")
    turn = await room.say(
        # In two steps: calls of one step run side by side, and the second needs the page of the first.
        f'call tool browser_markdown {{"url": "{url}"}}\nsay: Seen.\ncall tool browser_screenshot {{}}\nsay: Three.'
    )
    read, seen = await parts(room)
    assert read["title"] == "Read a page in a browser"
    assert read["output"]["markdown"] == "# Shop\n\nthree things"
    assert seen.get("output", seen) == {"url": url, "title": "/shop", "file": "page.png"}
    [row] = await db(lambda: list(Attachment.objects.filter(owner_id=room.key.owner_id)))
    assert (row.name, row.media_type, row.instance_id) == ("page.png", "image/png", turn.instance_id)
    with object_storage().open(row.storage_name, "rb") as file:
        assert file.read().startswith(b"\x89PNG")


async def test_a_browser_is_kept_for_the_next_turn_of_its_conversation_only(make_room: MakeRoom, shop: Site) -> None:
    url = shop.page("/kept", "kept")
    room, other = make_room("surfer"), make_room("surfer", "other")
    await room.say(f'call tool browser_links {{"url": "{url}"}}\nsay: done')
    await room.say("call tool browser_markdown {}\nsay: done")
    assert (await parts(room))[1]["output"]["markdown"] == "kept"
    await other.say("call tool browser_markdown {}\nsay: done")
    assert (await parts(other))[0]["errorText"] == "There is no page yet: name an address."


async def test_code_that_a_crash_cut_is_reported_and_not_run_again(make_room: MakeRoom, shop: Site) -> None:
    Dying.runs.clear()
    room = make_room("surfer")
    code = json.dumps({"code": "async () => cdp.send({ method: 'Target.getTargets' })"})
    await room.say(f"call tool browser_execute {code}\nsay: done")
    [part] = await parts(room)
    assert "interrupted" in part["errorText"]
    assert Dying.runs == ["cdp"]
