"""Browsers in words, by what they say of themselves."""

import pytest

from chat.core.devices import device_of

KIT, KIT_OF_APPLE = "AppleWebKit/537.36 (KHTML, like Gecko)", "AppleWebKit/605.1.15 (KHTML, like Gecko)"
CHROME = f"Mozilla/5.0 (X11; Linux x86_64) {KIT} Chrome/140.0.0.0 Safari/537.36"
SAFARI = f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {KIT_OF_APPLE} Version/19.0 Safari/605.1.15"
IPHONE = f"Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) {KIT_OF_APPLE} {{}} Mobile/15E148 Safari/604.1"
PHONE = f"Mozilla/5.0 (Linux; Android 10; K) {KIT} {{}}Chrome/140.0.0.0 Mobile Safari/537.36"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:145.0) Gecko/20100101 Firefox/145.0", ("Firefox", "Windows")),
        (CHROME, ("Chrome", "Linux")),
        (CHROME.replace("Chrome/", "HeadlessChrome/"), ("Chrome", "Linux")),
        (CHROME + " Edg/140.0.0.0", ("Edge", "Linux")),
        (CHROME.replace("X11; Linux x86_64", "X11; CrOS x86_64 14541.0.0") + " OPR/120.0", ("Opera", "ChromeOS")),
        (SAFARI, ("Safari", "macOS")),
        (IPHONE.format("Version/19.0"), ("Safari", "iPhone")),
        (IPHONE.format("CriOS/140.0"), ("Chrome", "iPhone")),
        (PHONE.format(""), ("Chrome", "Android")),
        (PHONE.format("SamsungBrowser/28.0 "), ("Samsung Internet", "Android")),
        ("curl/8.14.1", ("", "")),
        ("", ("", "")),
        (" " * 2_000 + CHROME, ("", "")),
    ],
)
def test_browsers_are_named(text: str, expected: tuple[str, str]) -> None:
    assert device_of(text) == expected
