"""Choosing the model of a conversation: among those that the site allows, with effort and parameters."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from chat.llm.probing import questions
from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.conftest import PHONE
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look

OpenTab = Callable[..., ChatPage]


def picker(page: Page) -> Locator:
    """What opens under the model's name."""
    return page.get_by_role("dialog", name="Choose a model")


def open_picker(page: Page) -> Locator:
    """Open it and return it, once a former choice has put it away."""
    expect(picker(page)).to_be_hidden()
    page.locator("#choose-model").click()
    expect(picker(page)).to_be_visible()
    return picker(page)


_TYPED_AT_ONCE = """async (label) => {
    label.click();
    await new Promise((go) => setTimeout(go));  // drawn, and no frame has passed
    const field = document.querySelector(".parameters input[type=number]");
    field.value = "1.5";
    field.dispatchEvent(new InputEvent("input", { bubbles: true }));
    await new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(go))));
}"""


def stored(tab: ChatPage) -> dict[str, Any]:
    """The conversation as the API gives it."""
    key = tab.page.url.rpartition("/c/")[2]
    answer: dict[str, Any] = tab.page.request.get(f"{tab.base_url}/api/v1/instances/{key}").json()
    return answer


@pytest.mark.smoke
def test_model_is_chosen_by_keyboard_and_stays(tab: ChatPage) -> None:
    page = tab.page
    tab.ask("Alpha\nsay: a.")
    expect(page.locator("#model-name")).to_have_text("scripted")
    page.locator("#choose-model").focus()
    page.keyboard.press("Enter")
    expect(picker(page).get_by_role("radio", name="scripted")).to_be_focused()
    expect(picker(page).get_by_role("radio", name="scripted")).to_have_attribute("aria-checked", "true")
    mini = picker(page).get_by_role("radio", name="GPT-5 mini")
    expect(mini).to_contain_text("$0.25 in, $2.00 out per million tokens")
    expect(mini).to_contain_text("400k tokens of context · reads images, documents")
    check(page)
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    expect(mini).to_be_focused()
    page.keyboard.press("Enter")
    expect(picker(page)).to_be_hidden()
    expect(page.locator("#choose-model")).to_be_focused()
    expect(page.locator("#model-name")).to_have_text("GPT-5 mini")
    assert "GPT-5 mini will answer from now on." in tab.spoken()
    page.reload()
    expect(page.locator("#model-name")).to_have_text("GPT-5 mini")
    assert stored(tab)["model_choice"]["model"] == "openai/gpt-5-mini"
    tab.ask("say: b.")
    assert tab.text_of_last() == "b."
    open_picker(page).get_by_role("radio", name="scripted").click()
    expect(page.locator("#model-name")).to_have_text("scripted")
    assert stored(tab)["model_choice"] is None


def test_choice_for_a_new_conversation_is_sent_with_it(tab: ChatPage) -> None:
    open_picker(tab.page).get_by_role("radio", name="GPT-5 mini").click()
    expect(tab.page.locator("#model-name")).to_have_text("GPT-5 mini")
    open_picker(tab.page).get_by_role("radio", name="High", exact=True).check()
    tab.page.keyboard.press("Escape")
    tab.ask("Alpha\nsay: a.")
    assert stored(tab)["model"] == "openai/gpt-5-mini"
    assert stored(tab)["model_choice"]["reasoning_effort"] == "high"
    expect(tab.page.locator("#model-name")).to_have_text("GPT-5 mini")


def test_effort_is_chosen_where_the_model_knows_efforts(tab: ChatPage) -> None:
    page = tab.page
    tab.ask("Alpha\nsay: a.")
    assert open_picker(page).get_by_role("group", name="Reasoning effort").count() == 0
    picker(page).get_by_role("radio", name="GPT-5", exact=False).nth(0).click()
    effort = open_picker(page).get_by_role("group", name="Reasoning effort")
    expect(effort.get_by_role("radio")).to_have_count(5)
    expect(effort.get_by_role("radio", name="Default")).to_be_checked()
    with page.expect_response("**/instances/*"):
        effort.get_by_role("radio", name="High").check()
    check(page)
    look(tab, "model-effort")
    page.reload()
    effort = open_picker(page).get_by_role("group", name="Reasoning effort")
    expect(effort.get_by_role("radio", name="High")).to_be_checked()
    picker(page).get_by_role("radio", name="GPT-4o").click()  # knows no effort: it is not kept
    expect(page.locator("#model-name")).to_have_text("GPT-4o")
    assert stored(tab)["model_choice"]["reasoning_effort"] is None


def test_parameters_have_ranges_and_go_back_to_the_default(tab: ChatPage) -> None:
    page = tab.page
    tab.ask("Alpha\nsay: a.")
    open_picker(page).get_by_text("Parameters").click()
    field = page.get_by_role("spinbutton", name="Temperature")
    field.fill("3")
    field.press("Enter")
    expect(picker(page).get_by_role("alert")).to_have_text("Enter a number from 0 to 2.")
    check(page)
    assert stored(tab)["model_choice"] is None
    field.fill("0.4")
    with page.expect_response("**/instances/*"):
        field.press("Enter")
    expect(tab.messages).to_have_count(2)  # the field stands in the message's form: nothing was sent
    expect(picker(page)).to_contain_text("1 changed")
    assert stored(tab)["model_choice"]["temperature"] == 0.4
    look(tab, "model-parameters")
    page.reload()
    open_picker(page)
    expect(field).to_have_value("0.4")
    picker(page).get_by_role("button", name="Reset").click()
    expect(field).to_have_value("")
    expect(field).to_be_focused()
    tab.until(lambda: stored(tab)["model_choice"] is None)


def test_what_is_typed_as_a_field_appears_is_kept(tab: ChatPage) -> None:
    page = tab.page
    tab.ask("Alpha\nsay: a.")
    open_picker(page).get_by_text("Parameters").evaluate(_TYPED_AT_ONCE)
    expect(page.get_by_role("spinbutton", name="Temperature")).to_have_value("1.5")


def test_refused_choice_is_said_and_the_former_stays(tab: ChatPage) -> None:
    page = tab.page
    tab.ask("Alpha\nsay: a.")
    refusal = {"detail": "openai/gpt-5 is not offered here.", "code": "model_choice_invalid"}
    page.route("**/instances/*", lambda route: route.fulfill(status=422, json=refusal))
    open_picker(page).get_by_role("radio", name="GPT-5", exact=False).nth(0).click()
    expect(picker(page).get_by_role("alert")).to_have_text("openai/gpt-5 is not offered here.")
    expect(picker(page).get_by_role("radio", name="scripted")).to_have_attribute("aria-checked", "true")
    check(page)
    look(tab, "model-refused")
    page.keyboard.press("Escape")
    expect(page.locator("#model-name")).to_have_text("scripted")


def test_withdrawn_model_is_said_and_the_default_answers(tab: ChatPage, live_product: LiveProduct) -> None:
    tab.ask("Alpha\nsay: a.")
    live_product.call("choose_model", tab.page.url.rpartition("/c/")[2], "openai/gone")
    tab.page.reload()
    expect(tab.page.locator("#model-name")).to_have_text("scripted")
    expect(open_picker(tab.page).get_by_role("note")).to_contain_text("openai/gone")
    check(tab.page)
    look(tab, "model-withdrawn")


def test_no_choice_shows_the_name_alone(tab: ChatPage) -> None:
    tab.page.route("**/api/v1/models?*", lambda route: route.fulfill(json={"items": []}))
    tab.open("/c/new")
    expect(tab.page.locator("#model-name")).to_have_text("scripted")
    expect(tab.page.locator("#choose-model")).to_have_count(0)
    check(tab.page)


def test_choice_of_another_conversation_is_its_own(tab: ChatPage) -> None:
    tab.ask("Alpha\nsay: a.")
    open_picker(tab.page).get_by_role("radio", name="GPT-4o").click()
    expect(tab.page.locator("#model-name")).to_have_text("GPT-4o")
    tab.page.get_by_role("link", name="New", exact=True).click()
    expect(tab.page.locator("#model-name")).to_have_text("scripted")
    tab.page.get_by_role("link", name="Alpha").click()
    expect(tab.page.locator("#model-name")).to_have_text("GPT-4o")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone_reaches_every_model(open_tab: OpenTab, scheme: str) -> None:
    phone = open_tab(shape=PHONE, color_scheme=scheme)
    open_picker(phone.page)
    box = picker(phone.page).bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    check(phone.page)
    picker(phone.page).get_by_role("radio", name="GPT-4o").click()
    expect(phone.page.locator("#model-name")).to_have_text("GPT-4o")


ABLE = {
    questions.LOOK_UP: 'reason: Two.\ncall tool lookup {"q": "amber"}\ncall tool lookup {"q": "birch"}\nsay: Found.',
    questions.SEE: "say: Purple.",
    questions.READ: "error 400",
}


def test_what_a_probe_found_is_shown_in_the_picker(tab: ChatPage, live_product: LiveProduct) -> None:
    page = tab.page
    model = picker(page).locator('[data-option="openai/gpt-4o"]')
    open_picker(page)
    expect(model).to_contain_text("reads images, documents")
    expect(model).not_to_contain_text("uses tools")
    printed = live_product.call("probe_model", "openai/gpt-4o", ABLE)
    assert "2 calls in one answer" in printed

    def is_shown() -> bool:
        """Other processes learn of it within seconds."""
        page.reload()
        open_picker(page)
        return "uses tools" in model.inner_text()

    tab.until(is_shown)
    expect(model).to_contain_text("uses tools · thinks before it answers")
    expect(model).to_contain_text("reads images")
    expect(model).not_to_contain_text("documents")  # they are in the list, and the server refuses them
    check(page)
    look(tab, "model-probed")
