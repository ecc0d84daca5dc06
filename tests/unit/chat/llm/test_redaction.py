"""Secrets stay out of logs and of the admin."""

import pytest

from chat.llm.adapters.redaction import REDACTED, redact_body, redact_text


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abcdefghijklmnop",
        "Authorization: Bearer abc.def.ghi",
        '{"api_key": "verysecretvalue"}',
        "password=hunter22222",
        "gsk_abcdefghijklmnopqrst",
    ],
)
def test_credentials_are_taken_out_of_text(text: str) -> None:
    redacted = redact_text(text)
    assert "[redacted]" in redacted
    for secret in ("abcdefghijklmnop", "abc.def", "verysecret", "hunter2"):
        assert secret not in redacted


def test_known_secrets_are_taken_out_whatever_they_look_like() -> None:
    assert redact_text("my horse is called Bello", secrets=("Bello", "")) == "my horse is called [redacted]"


def test_long_text_is_cut() -> None:
    assert len(redact_text("x" * 10_000)) < 3000


def test_ordinary_text_stays() -> None:
    assert redact_text("maximum context length is 8192 tokens") == "maximum context length is 8192 tokens"


def test_a_body_keeps_its_shape_and_loses_secrets_and_bytes() -> None:
    image = "data:image/png;base64," + "QUJD" * 200
    body = {
        "model": "m",
        "api_key": "hidden",
        "messages": [{"role": "user", "content": [{"image_url": {"url": image}}, {"text": "hello"}]}],
        "tools": [{"parameters": {"properties": {"password": {"type": "string"}}}}],
    }
    redacted = redact_body(body)
    assert redacted["api_key"] == "[redacted]"
    parts = redacted["messages"][0]["content"]
    assert parts[0]["image_url"]["url"].startswith("data:image/png;base64,[600 bytes, sha256 ")
    assert parts[1] == {"text": "hello"}
    assert redacted["tools"] == body["tools"]
    assert body["api_key"] == "hidden"


def test_a_secret_is_known_by_its_key_however_long_that_is() -> None:
    body = {"x" * 100 + "_api_key": "a", "x" * 100: "b", "token": "c", "tokens" * 20: "d"}
    assert list(redact_body(body).values()) == [REDACTED, "b", REDACTED, "d"]
