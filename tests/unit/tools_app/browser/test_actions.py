"""Quick actions: pages as people see them, in a real browser."""

import struct
from typing import Any

import pytest

from tests.unit.tools_app.browser.conftest import Browser, Site, browser_of, context
from tools_app.browser.errors import BrowserFailed
from tools_app.browser.tools import MAX_CHARS
from tools_app.core.tool_output import Media
from tools_app.fetching.errors import FetchFailed

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_page_comes_as_markdown_after_its_scripts_have_run(browser: Browser, site: Site) -> None:
    site.put("/words.json", text='"from the server"', content_type="application/json")
    url = site.page(
        "/late",
        "<h1>Head</h1><p id=p></p><a href='next?a=1'>on</a><script>"
        "addEventListener('load', () => fetch('/words.json').then((r) => r.json()).then((t) => p.append(t)))</script>",
    )
    noted: list[tuple[str, str]] = []
    assert await browser("markdown", url=url, within=context(noted=noted)) == {
        "url": url,
        "title": "/late",
        "status": 200,
        "markdown": f"# Head\n\nfrom the server\n\n[on]({site.url('/next?a=1')})",
        "truncated": False,
    }
    assert ("web", url) in noted


async def test_a_long_page_is_cut_between_its_ends(browser: Browser, site: Site) -> None:
    url = site.page("/long", "<p>First " + "word " * 20_000 + "last.")
    answer = await browser("markdown", url=url)
    assert answer["truncated"]
    assert MAX_CHARS - 100 < len(answer["markdown"]) <= MAX_CHARS
    assert answer["markdown"].startswith("First word")
    assert answer["markdown"].rstrip().endswith("word last.")


async def test_links_come_with_their_whole_address_once(browser: Browser, site: Site) -> None:
    url = site.page(
        "/links",
        "<a href='/a'>One</a><a href='/a'>again</a><a href='#top'>here</a><a href='javascript:alert(1)'>no</a>"
        "<a href='mailto:a@b.c'>no</a><a href='https://example.com/x' aria-label='Other'></a>",
    )
    assert (await browser("links", url=url))["links"] == [
        {"text": "One", "url": site.url("/a")},
        {"text": "here", "url": f"{url}#top"},
        {"text": "Other", "url": "https://example.com/x"},
    ]


async def test_selectors_read_parts_of_a_page(browser: Browser, site: Site) -> None:
    rows = "".join(f"<li class=row><a href='/{n}'>Name {n}</a><b data-price='{n}.50'></b></li>" for n in range(3))
    url = site.page("/rows", f"<h1>Shop</h1><ul>{rows}</ul>")
    fields = {"name": "a", "link": "a@href", "price": "b@data-price", "none": "i"}
    assert (await browser("extract", url=url, fields={"head": "h1", "links": "a@href"}))["data"] == {
        "head": ["Shop"],
        "links": [site.url(f"/{n}") for n in range(3)],
    }
    assert (await browser("extract", url=url, fields=fields, each=".row"))["data"] == [
        {"name": f"Name {n}", "link": site.url(f"/{n}"), "price": f"{n}.50", "none": None} for n in range(3)
    ]
    with pytest.raises(BrowserFailed, match="not a valid selector"):
        await browser("extract", url=url, fields={"bad": "h1::("})


def size_of(media: Media) -> tuple[int, int]:
    assert media.data.startswith(b"\x89PNG\r\n")
    width, height = struct.unpack(">II", media.data[16:24])
    return width, height


async def test_a_picture_shows_the_window_or_all_of_the_page(browser: Browser, site: Site) -> None:
    url = site.page("/tall", "<div style='height:3000px'>tall</div>")
    [window] = (await browser("screenshot", url=url)).media
    [whole] = (await browser("screenshot", url=url, full_page=True)).media
    assert size_of(window)[1] < 1_000
    assert size_of(whole)[1] >= 3_000


async def test_the_page_stays_for_the_next_call_of_the_conversation(browser: Browser, site: Site) -> None:
    url = site.page("/stays", "<h1>Still here</h1>")
    await browser("links", url=url)
    assert "Still here" in (await browser("markdown"))["markdown"]
    with pytest.raises(BrowserFailed, match="no page yet"):
        await browser("markdown", within=context(instance="another"))
    with pytest.raises(BrowserFailed, match="no page yet"):
        await browser("markdown", within=context(user_id=2))


async def test_a_browser_of_one_call_keeps_nothing(chromium: str, site: Site) -> None:
    once = browser_of(site)
    url = site.page(
        "/cookie", "<p id=p></p><script>p.append(document.cookie + '!'); document.cookie = 'seen=1'</script>"
    )
    assert (await once("markdown", url=url))["markdown"] == "!"
    assert (await once("markdown", url=url))["markdown"] == "!"


async def test_the_status_of_a_page_is_told(browser: Browser, site: Site) -> None:
    answer = await browser("markdown", url=site.page("/missing", "nothing here", status=404))
    assert (answer["status"], answer["markdown"]) == (404, "nothing here")


async def test_a_page_that_cannot_be_reached_says_why(browser: Browser, site: Site) -> None:
    async def broken(request: Any) -> Any:
        request.transport.abort()
        raise ConnectionResetError

    site.answers["/broken"] = broken
    with pytest.raises(FetchFailed, match="could not be loaded: net::ERR_"):
        await browser("markdown", url=site.url("/broken"))


async def test_dialogs_keep_nobody_waiting(browser: Browser, site: Site) -> None:
    url = site.page(
        "/dialogs",
        "<p id=p></p><script>alert(1); p.append([confirm('?'), prompt('?')].join()); print(); "
        "onbeforeunload = (e) => { e.preventDefault(); return 'stay' }</script>",
    )
    assert (await browser("markdown", url=url))["markdown"] == "false,"
    assert (await browser("markdown", url=site.page("/after", "after")))["markdown"] == "after"


async def test_a_page_cannot_change_how_it_is_read(browser: Browser, site: Site) -> None:
    url = site.page(
        "/tricks",
        "<a href='/real'>Real</a><script>Map.prototype.set = Array.prototype.map = () => ['fooled'];"
        "document.querySelectorAll = () => [];"
        "Object.defineProperty(document, 'title', {get: () => 'fooled'})</script>",
    )
    answer = await browser("links", url=url)
    assert answer["links"] == [{"text": "Real", "url": site.url("/real")}]
    assert answer["title"] == "/tricks"
