"""The code examples of the Think documentation under "Browser tools", translated; they drive a real browser."""

import json
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import pytest

from chat.llm.scripted import ScriptedModel
from chat.models import Attachment
from chat.think import Think, Tool
from chat.tools.browser import create_browser_tools
from tests.chromium import require_chromium
from tests.db.chat.turns.agents.everyday import MODELS
from tests.unit.tools_app.browser.conftest import LOOPBACK, Site, serving
from thinkproject.kernel.aio import db
from tools_app.browser import starting
from tools_app.browser.pool import pool
from tools_app.browser.spec import PORT_FILE

from .conftest import MakeRoom
from .working import call, offered, outputs

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("shared_sandbox_closes")]

SEARCH = """async () => {
  const page = (await spec.get()).domains.find((domain) => domain.name === "Page");
  return page.commands.map((command) => command.method);
}"""
EXECUTE = """async () => {
  const { targetId } = await cdp.send({ method: "Target.createTarget", params: { url: "about:blank" } });
  const { sessionId } = await cdp.attachToTarget({ targetId });
  await cdp.send({ method: "Page.enable", sessionId });
  await cdp.send({ method: "Page.navigate", params: { url: "ADDRESS" }, sessionId });
  await cdp.waitForEvent({ method: "Page.loadEventFired", sessionId });
  const { root } = await cdp.send({ method: "DOM.getDocument", sessionId });
  const found = { nodeId: root.nodeId, selector: "h1" };
  const { nodeId } = await cdp.send({ method: "DOM.querySelector", params: found, sessionId });
  const { outerHTML } = await cdp.send({ method: "DOM.getOuterHTML", params: { nodeId }, sessionId });
  const sum = { expression: "window.prices.reduce((a, b) => a + b)", returnByValue: true };
  const { result } = await cdp.send({ method: "Runtime.evaluate", params: sum, sessionId });
  return { outerHTML, sum: result.value, ...(await cdp.screenshot({ sessionId })) };
}"""


class Browsing(Think, abstract=True):
    """What the examples share: the model of the test, no files, and what they may reach."""

    workspace_tools = False
    allow: ClassVar[list[str]] = []
    cdp_url: ClassVar[str] = ""

    def get_model(self) -> ScriptedModel:
        return MODELS["current"]


class BrowserToolsDoc(Browsing):
    """A browser of the product's own."""

    def get_tools(self) -> tuple[Tool, ...]:
        return create_browser_tools(self.allow, allow_private=LOOPBACK)


class CustomEndpointDoc(Browsing):
    """A browser that listens elsewhere."""

    def get_tools(self) -> tuple[Tool, ...]:
        return create_browser_tools(self.allow, cdp_url=self.cdp_url, allow_private=LOOPBACK)


@pytest.fixture
async def shop_page(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """Address of a page with a heading and two prices."""
    require_chromium()
    async for site in serving():
        monkeypatch.setattr(Browsing, "allow", [f"http://127.0.0.1:{site.port}"])
        yield shop_of(site)
    await pool().close()


def shop_of(site: Site) -> str:
    return site.page("/shop", "<h1>Shop</h1><script>window.prices = [3, 4]</script>")


@pytest.fixture
async def endpoint(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """A browser that listens on this machine."""
    flags = ("--remote-debugging-port=0", "--proxy-server=direct://")
    chrome = await starting.started(require_chromium(), starting.bare_walls(), flags=flags)
    port = (chrome.profile.folder / PORT_FILE).read_text().split()[0]
    monkeypatch.setattr(Browsing, "cdp_url", f"http://127.0.0.1:{port}")
    yield
    await pool().close()
    await chrome.end()


async def looked_up_and_driven(make_room: MakeRoom, agent: str, url: str) -> None:
    """Have a model find a command and then read a page, with its picture."""
    room = make_room(agent)
    commands, driven = await outputs(
        room,
        call("browser_search", code=SEARCH),
        call("browser_execute", code=EXECUTE.replace("ADDRESS", url)),
    )
    assert offered(room)[:2] == ["browser_search", "browser_execute"]
    assert {"Page.navigate", "Page.captureScreenshot"} <= set(commands["value"])
    value: dict[str, Any] = driven["value"]
    assert (value["outerHTML"], value["sum"]) == ("<h1>Shop</h1>", 7)
    assert driven["pages"] == [url]
    [picture] = await db(lambda: list(Attachment.objects.filter(owner_id=room.key.owner_id)))
    assert (picture.name, picture.media_type) == (value["file"], "image/png")
    assert json.dumps(room.model.requests[-1]["messages"]).count("Page.navigate") >= 1  # the model reads the answers


async def test_browser_tools(make_room: MakeRoom, shop_page: str) -> None:
    await looked_up_and_driven(make_room, "browser-tools-doc", shop_page)


async def test_browser_tools_with_a_custom_endpoint(make_room: MakeRoom, shop_page: str, endpoint: None) -> None:
    await looked_up_and_driven(make_room, "custom-endpoint-doc", shop_page)
