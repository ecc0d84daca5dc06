"""Formulas, tasks, footnotes, tables, citations and code in answers, and code in people's own messages."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.live_product import LiveProduct
from tests.browser.script_lines import say

OpenTab = Callable[..., ChatPage]
FORMULAS = (
    "Inline $x^2$ and \\(y_1 * z_1\\), shown $$w$$ and\n\n\\[\n\\frac{a}{b}\n\\]\n\nIt costs $5 and $10, "
    "`$code$`, US$3 or 4$.\n\n"
    "```\n$$fenced$$\n```\n\nwrong: $\\frac{1}{$"
)
ALLOWED_IN_FORMULAS = """(roots) => roots.flatMap((root) => [...root.querySelectorAll("*")]).filter((element) =>
    element.namespaceURI !== "http://www.w3.org/1998/Math/MathML" ||
    element.matches("annotation-xml, maction, semantics") ||
    [...element.attributes].some(({ name, value }) => /^(on|href|src|id$|xlink)/.test(name) || /url|script/.test(value))
).map((element) => element.outerHTML)"""


def seed(product: LiveProduct, *texts: str, user: str = "Well?", sources: list[dict[str, Any]] | None = None) -> str:
    """A stored conversation with these answers; the address of its page. `sources` are parts after the first text."""
    messages: list[dict[str, Any]] = []
    for index, text in enumerate(texts):
        parts = [{"type": "text", "text": text, "state": "done"}, *(sources or [])]
        messages.append({"id": f"u{index}", "role": "user", "parts": [{"type": "text", "text": user}]})
        messages.append({"id": f"a{index}", "role": "assistant", "parts": parts})
    return f"/c/{product.seed('Answers', messages)}"


def requested(page: Page) -> list[str]:
    """Names of the scripts that the page has loaded so far."""
    names: list[str] = page.evaluate(
        "performance.getEntriesByType('resource').map((entry) => entry.name.split('/').at(-1).split('.')[0])"
    )
    return names


def settled(answer: Locator) -> None:
    """Wait until no formula waits for its renderer."""
    expect(answer.locator(".math:not(.is-shown, .is-wrong)")).to_have_count(0)


@pytest.mark.smoke
def test_formulas_are_shown_and_money_and_code_are_not(tab: ChatPage) -> None:
    assert "temml" not in requested(tab.page)
    answer = tab.ask(say(FORMULAS))
    settled(answer)
    assert "temml" in requested(tab.page)
    assert answer.locator(".math.is-shown math").count() == 4
    assert answer.locator(".math.is-display math").count() == 2
    text = answer.locator(".md").inner_text()
    assert "It costs $5 and $10, $code$, US$3 or 4$." in text
    assert "$$fenced$$" in text
    wrong = answer.locator(".math.is-wrong")
    expect(wrong).to_have_text("\\frac{1}{")
    assert "could not be shown" in (wrong.get_attribute("title") or "")
    assert answer.locator("mfrac").count() == 1


NO_FORMULAS = [
    "$5 and $10",
    "US$5 or US$10",
    "$5-$10, $5/$10, ($3) and ($4)",
    "from $5 million to $6 million",
    "5$ and 10$",
    "between $5 and 10$",
    "**$5** and **$6**",
    "set $foo=$bar and $HOME/$USER",
    "$AAPL, $MSFT/$GOOG",
    "`$x$` and ``\\(y\\)``",
    "$5 per `a$`",
    "\\$x\\$ and \\\\(y\\\\)",
    "$ x $ and $$ $$",
    "    $$indented code$$",
    "[$5](https://example.com/$x)",
]
FORMULAS_EACH = [
    "$x$",
    "($x$)",
    "$x$, $y$.",
    "**$x$**",
    "$5x$",
    "$1{,}000$",
    "a$$x$$b",
    "> $x$",
    "1. \\(x\\)",
    "| $x$ |\n|---|",
]


def test_what_reads_as_money_is_no_formula(tab: ChatPage) -> None:
    counts = tab.page.evaluate(
        """async (texts) => {
            const { renderMarkdown } = await import(new URL("/static/think/testing.js", location));
            return texts.map((text) => {
                const root = document.createElement("div");
                root.append(...renderMarkdown(text));
                return root.querySelectorAll(".math").length;
            });
        }""",
        NO_FORMULAS + FORMULAS_EACH,
    )
    found = dict(zip(NO_FORMULAS + FORMULAS_EACH, counts, strict=True))
    assert [text for text in NO_FORMULAS if found[text]] == []
    assert [text for text in FORMULAS_EACH if not found[text]] == []


def test_alignment_of_formulas_survives_the_strict_policy(tab: ChatPage) -> None:
    answer = tab.ask(say("$$\\begin{aligned}a&=b\\\\c&=d\\end{aligned}$$ $\\color{red}x$ $\\boxed{y}$"))
    settled(answer)
    cells = answer.locator("mtd").evaluate_all("cells => cells.map(cell => getComputedStyle(cell).paddingLeft)")
    assert set(cells) == {"0px"}  # the formula's own distances, not the browser's
    assert answer.locator("mi", has_text="x").evaluate("x => getComputedStyle(x).color") == "rgb(255, 0, 0)"


HOSTILE_TEX = [
    "\\href{javascript:window.pwned=1}{x}",
    "\\url{https://evil.example/a}",
    "\\includegraphics{https://evil.example/b.png}",
    "\\htmlData{a=b}{x}\\cssId{boot}{x}\\class{notice}{x}\\style{background:url(//evil.example/c)}{x}",
    "\\def\\a{\\a\\a}\\a",
    "\\def\\a{\\b\\b\\b\\b}\\def\\b{\\c\\c\\c\\c}\\def\\c{\\d\\d\\d\\d}\\def\\d{xxxxxxxxxxxxxxxx}" + "\\a" * 40,
    "\\newcommand{\\a}{" + "x" * 400 + "}" + "\\a" * 300,
    "{" * 2_400 + "x" + "}" * 2_400,
    "\\sqrt{" * 700 + "x" + "}" * 700,
    "\\left(" * 300 + "x" + "\\right)" * 300,
    "\\rule{99999em}{99999em}\\kern-99999em x\\hspace{-99999em}y",
    "\\color{url(//evil.example/d)}x \\textcolor{expression(alert(1))}{y}",
    "\\text{</math><img src=https://evil.example/e onerror=window.pwned=1><style>*{display:none}</style>}",
    "\\unicode{x3c}\\char`\\<\\verb|<script>|",
    "x_" * 2_000 + "x",
    "\\begin{matrix}" + "a&" * 2_000 + "\\end{matrix}",
]


@pytest.mark.smoke
def test_hostile_formulas_reach_nothing_and_take_no_time(tab: ChatPage) -> None:
    texts = [f"$${tex}$$" for tex in HOSTILE_TEX] + ["$x$ " * 3_000]
    found = tab.page.evaluate(
        """async (texts) => {
            const { renderMarkdown } = await import(new URL("/static/think/testing.js", location));
            const root = document.querySelector("#messages").appendChild(document.createElement("div"));
            root.append(...renderMarkdown("$x$"));
            while (root.querySelector(".math:not(.is-shown)")) await new Promise((done) => setTimeout(done, 20));
            const times = texts.map((text) => {
                const began = performance.now();
                root.append(...renderMarkdown(text));
                return performance.now() - began;
            });
            const box = document.querySelector("#messages").getBoundingClientRect();
            return [times, document.elementsFromPoint(10, 300).some((element) => element.closest(".math"))];
        }""",
        texts,
    )
    times, reaches_sidebar = found
    assert max(times) < 3_000, times
    assert not reaches_sidebar
    assert tab.page.evaluate(f"({ALLOWED_IN_FORMULAS})([...document.querySelectorAll('.math')])") == []
    assert tab.page.locator("#messages").locator("a, img, script, style, [id]").count() == 0
    assert tab.page.evaluate("window.pwned") is None
    assert tab.foreign == []


def test_what_is_read_stays_in_place_when_the_renderer_arrives(tab: ChatPage, live_product: LiveProduct) -> None:
    tall = "$$\\begin{pmatrix}1\\\\2\\\\3\\\\4\\\\5\\\\6\\end{pmatrix}$$\n\n```python\nx = 1\n```\n\n"
    texts = [tall * 3 + f"Landmark {index}.\n\n" + "Words to read. " * 300 for index in range(4)]
    address = seed(live_product, *texts)
    held = tab.hold("**/temml.*.js")
    tab.holds_back = True
    tab.open(address)
    tab.until(lambda: held)
    landmark = tab.page.get_by_text("Landmark 2.")
    landmark.evaluate("mark => mark.scrollIntoView({ block: 'start' })")
    tab.still()
    where = "mark => Math.round(mark.getBoundingClientRect().top)"
    before = landmark.evaluate(where)
    height = tab.page.evaluate("document.getElementById('scroller').scrollHeight")
    for route in held:
        route.continue_()
    settled(tab.page.locator("#messages"))
    tab.still()
    assert tab.page.evaluate("document.getElementById('scroller').scrollHeight") != height
    assert abs(landmark.evaluate(where) - before) <= 1


def test_code_is_plain_until_its_colours_arrive(tab: ChatPage) -> None:
    held = tab.hold("**/languages.*.js")
    tab.holds_back = True
    tab.open("/c/new")
    assert "languages" not in requested(tab.page)
    code = tab.ask(say("```python\ndef f(): pass\n```")).locator("figure.code code")
    tab.until(lambda: held)
    assert code.evaluate("code => code.childElementCount") == 0
    expect(code).to_have_text("def f(): pass\n")
    height = code.evaluate("code => code.offsetHeight")
    held[0].continue_()
    expect(code.locator(".hljs-keyword").first).to_have_text("def")
    assert code.evaluate("code => code.offsetHeight") == height


@pytest.mark.smoke
def test_tasks_are_boxes_that_say_how_they_stand(tab: ChatPage) -> None:
    answer = tab.ask(say("- [x] measured\n- [ ] *written* up\n  - [X] nested\n- plain [ ] text"))
    done = answer.get_by_role("checkbox", name="Completed task")
    open_ = answer.get_by_role("checkbox", name="Incomplete task")
    expect(done).to_have_count(2)
    expect(open_).to_have_count(1)
    expect(done.first).to_be_checked()
    expect(done.first).to_be_disabled()
    expect(open_).not_to_be_checked()
    assert "plain [ ] text" in answer.inner_text()


@pytest.mark.smoke
def test_footnotes_lead_there_and_back_inside_their_message(tab: ChatPage, live_product: LiveProduct) -> None:
    text = (
        "Start[^a] again[^b] and[^a].\n\n" + "Between. \n\n" * 60 + "[^b]: The second.\n[^a]: The first, *at length*.\n"
    )
    tab.open(seed(live_product, text, text.replace("first", "other")))
    answer = tab.answers.last
    answer.get_by_role("button", name="Footnote 1").last.click()
    note = answer.get_by_role("note", name="Footnote 1")
    expect(note).to_be_focused()
    expect(note).to_be_in_viewport()
    expect(note).to_contain_text("The other, at length.")
    note.get_by_role("button", name="Back to the text").press("Enter")
    expect(answer.get_by_role("button", name="Footnote 1").last).to_be_focused()
    expect(answer.get_by_role("button", name="Footnote 1").last).to_be_in_viewport()
    assert tab.page.locator("#messages [id]").count() == 0
    assert tab.page.evaluate("[scrollX, scrollY, document.querySelector('main').scrollTop]") == [0, 0, 0]


def test_a_footnotes_number_is_never_parted_from_its_word(tab: ChatPage) -> None:
    answer = tab.ask(say("Some words that fill a line[^a]. And more of them[^a], until the end.\n\n[^a]: Note."))
    for width in range(320, 480, 8):
        tab.page.set_viewport_size({"width": width, "height": 800})
        lines = answer.locator(".note-end").evaluate_all("ends => ends.map(end => end.getClientRects().length)")
        assert lines == [1, 1], width
    assert "fill a line1. And more of them1, until" in answer.locator(".md").inner_text()


WIDE = (
    "| "
    + " | ".join(f"column number {index}" for index in range(14))
    + " |\n"
    + "|---" * 14
    + "|\n| "
    + " | ".join("ab cd" * 14)
    + " |"
)


@pytest.mark.smoke
def test_a_wide_table_can_be_copied_and_expanded_by_keyboard(tab: ChatPage) -> None:
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    answer = tab.ask(say(f"| a | b |\n|---|---|\n| 1 | 2 |\n\n{WIDE}"))
    expect(answer.get_by_role("button", name="Expand")).to_have_count(1)  # the small one needs none
    expand = answer.get_by_role("button", name="Expand")
    expand.press("Enter")
    dialog = tab.page.get_by_role("dialog", name="Table")
    expect(dialog.get_by_role("columnheader")).to_have_count(14)
    assert dialog.evaluate("box => box.getBoundingClientRect().width") > answer.evaluate("a => a.offsetWidth")
    tab.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(expand).to_be_focused()
    answer.get_by_role("button", name="Copy table").click()
    copied = tab.page.evaluate("navigator.clipboard.readText()")
    assert copied.splitlines()[0].split("\t")[:2] == ["column number 0", "column number 1"]


@pytest.mark.smoke
def test_code_in_a_persons_message_is_code_and_nothing_else_is_markup(tab: ChatPage, live_product: LiveProduct) -> None:
    user = "Why?\n```python\nreturn  *x*\n```\n**not bold** $x$ [l](https://example.com)\n```\nnever closed"
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.open(seed(live_product, "Because.", user=user))
    message = tab.messages.first
    expect(message.locator("figure.code .code-language")).to_have_text("python")
    message.get_by_role("button", name="Copy", exact=True).click()
    assert tab.page.evaluate("navigator.clipboard.readText()") == "return  *x*"
    text = message.locator(".plain").inner_text()
    assert "**not bold** $x$ [l](https://example.com)\n```\nnever closed" in text
    assert message.locator("a, strong, math").count() == 0


SOURCES = [
    {"type": "source-url", "sourceId": "s-1", "url": "https://example.org/one", "title": "One & only"},
    {"type": "source-url", "sourceId": "s-2", "url": "javascript:window.pwned=1", "title": "Two"},
    {"type": "source-document", "sourceId": "s-3", "mediaType": "text/plain", "title": "Three"},
]


@pytest.mark.smoke
def test_citations_name_their_sources_and_none_is_invented(tab: ChatPage, live_product: LiveProduct) -> None:
    text = "Said [1], [1, 3], 【s-1†L3】 and [2]. Not [4], `[1]`, [0] or [link [1]](https://example.com)."
    tab.open(seed(live_product, text, sources=SOURCES))
    answer = tab.answers.last
    links = answer.locator(".cite a")
    expect(links).to_have_count(3)
    assert {link.get_attribute("href") for link in links.all()} == {"https://example.org/one"}
    assert links.first.get_attribute("title") == "Source 1: One & only"
    assert links.first.get_attribute("rel") == "noopener noreferrer nofollow"
    expect(answer.locator(".cite")).to_have_text(["[1]", "[1]", "[3]", "[1]", "[2]"])
    shown = answer.locator(".md").inner_text()
    assert "Not [4], [1], [0]" in shown


def test_citations_of_the_provider_stand_where_they_belong(tab: ChatPage) -> None:
    shown = tab.page.evaluate(
        """() => import(new URL("/static/think/testing.js", location)).then(({ citationsOf, renderMarkdown }) => {
            const source = { type: "source", sourceType: "url", id: "x", url: "https://example.org/x", title: "X" };
            const text = "The sky is blue, see https://a.example/b and `code`.\\n\\n```\\nfenced\\n```";
            const at = (words) => text.indexOf(words) + words.length;
            const part = { type: "text", text, citations: [
                { source, startIndex: 0, endIndex: at("blue") },
                { source: { ...source, url: "https://example.org/y", title: "Y" }, endIndex: at("a.example/b") },
                { source, endIndex: at("fenc") }, { url: "https://example.org/x" }, null, 7, {},
            ] };
            const message = { parts: [{ type: "source-url", sourceId: "q", url: "https://example.org/y" }, part] };
            const { sources, marked } = citationsOf(message);
            const root = document.createElement("div");
            root.append(...renderMarkdown(marked.get(part), sources));
            const bare = document.createElement("div");
            bare.append(...renderMarkdown(marked.get(part), []));
            return [root.innerText ?? root.textContent, sources.map(({ url }) => url), bare.textContent,
                [...root.querySelectorAll("a")].map(({ href }) => href)];
        })"""
    )
    text, urls, bare, hrefs = shown
    assert urls == ["https://example.org/y", "https://example.org/x"]
    assert "blue[2]," in text
    assert "https://a.example/b[1] and code." in text
    assert "fenced" in text
    assert hrefs[:3] == ["https://example.org/x", "https://a.example/b", "https://example.org/y"]
    assert "\ue011" not in text + bare


def test_words_of_a_search_are_marked_without_touching_the_text(tab: ChatPage) -> None:
    tab.ask(say("Détails: run, **run**ning and rerun. A *long phrase*.\\n\\nIstanbul and `runs`"))
    found = tab.page.evaluate(
        """async (queries) => {
            const testing = await import(new URL("/static/think/testing.js", location));
            const { highlightWords, wordsOf, clearHighlight } = testing;
            const element = document.querySelector(".message.is-assistant .md");
            const before = element.innerHTML;
            const marked = queries.map((query) => {
                const isMarked = highlightWords(element, wordsOf(query));
                return isMarked ? [...CSS.highlights.get("search-hit")].map(String) : null;
            });
            const isUntouched = element.innerHTML === before;
            clearHighlight();
            return [marked, isUntouched, CSS.highlights.has("search-hit")];
        }""",
        ["details", "RUN -istanbul", '"long phrase" OR detail', "nothing", "istan OR zebra"],
    )
    marked, is_untouched, is_left = found
    assert is_untouched
    assert not is_left
    assert marked[0] == ["Détails"]
    assert marked[1] == ["run", "running", "runs"]
    assert marked[2] == ["Détails", "long phrase"]
    assert marked[3] is None
    assert marked[4] == ["Istanbul"]


def test_a_selection_survives_the_end_of_a_text_with_footnotes(tab: ChatPage) -> None:
    kept = tab.page.evaluate(
        """() => import(new URL("/static/think/testing.js", location)).then(async ({ LiveText }) => {
            const root = document.body.appendChild(document.createElement("div"));
            const live = new LiveText(root);
            const blocks = ["First words.", "Then $x$ and[^1].", "```python\\nx = 1\\n```", "[^1]: A note.", "End."];
            const text = blocks.join("\\n\\n");
            for (let at = 8; at < text.length; at += 8) {
                live.update(text.slice(0, at), true);
                await new Promise((done) => setTimeout(done, 60));
            }
            const node = root.firstElementChild.firstChild;
            getSelection().setBaseAndExtent(node, 0, node, 5);
            live.update(text, false);
            const isSame = root.firstElementChild.firstChild === node;
            const kept = [String(getSelection()), root.querySelectorAll(".note-ref").length, isSame];
            live.update(text + "\\n\\nMore[^1].", true); // an answer that goes on after it had ended
            await new Promise((done) => setTimeout(done, 120));
            live.update(text + "\\n\\nMore[^1].", false);
            kept.push(root.querySelectorAll("p").length, root.querySelectorAll("figure").length);
            root.remove();
            return kept;
        })"""
    )
    assert kept == ["First", 1, True, 5, 1], json.dumps(kept)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_a_rich_answer(open_tab: OpenTab, live_product: LiveProduct, scheme: str) -> None:
    wide = "$$" + "+".join(f"x_{{{index}}}" for index in range(80)) + "$$"
    text = f"{FORMULAS}\n\n{wide}\n\n- [x] done\n- [ ] open\n\nNote[^1], said [1].\n\n{WIDE}\n\n[^1]: Here."
    tab = open_tab(color_scheme=scheme)
    tab.open(seed(live_product, text, user="```python\nx = 1\n```", sources=SOURCES))
    settled(tab.answers.last)
    expect(tab.page.get_by_role("group", name="Formula")).to_have_count(1)
    check(tab.page)
