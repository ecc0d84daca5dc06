"""What a model is asked for a summary that people read, and what of its answer is kept (B5.5)."""

import pytest

from chat.core.context.session_summaries import (
    ALL_CHARS,
    MAX_SUMMARY,
    MESSAGE_CHARS,
    clean_summary,
    is_about,
    session_summary_request,
)
from chat.core.model.language_model import TextContent, UserMessage
from sessions_app.core.messages.shapes import Message


def message(role: str, text: str) -> Message:
    return {"id": "m", "role": role, "parts": [{"type": "text", "text": text}]}


def asked(previous: str, *messages: Message) -> str:
    [said] = session_summary_request(previous, messages).messages
    assert isinstance(said, UserMessage)
    [content] = said.content
    assert isinstance(content, TextContent)
    return content.text


def test_the_request_has_the_conversation_and_no_tools() -> None:
    request = session_summary_request("", [message("user", "Tea?"), message("assistant", "Yes.")])
    assert request.tools == ()
    assert asked("", message("user", "Tea?"), message("assistant", "Yes.")) == (
        "<conversation>\n[user]\nTea?\n\n[assistant]\nYes.\n</conversation>"
    )


def test_the_former_summary_is_brought_up_to_date() -> None:
    text = asked("About tea.", message("user", "And cake?"))
    assert "<summary>\nAbout tea.\n</summary>" in text
    assert text.index("About tea.") < text.index("And cake?")


def test_of_a_long_conversation_the_beginning_and_the_end() -> None:
    text = asked("", *(message("user", f"{number:03} " + "x" * 3_000) for number in range(20)))
    assert len(text) < ALL_CHARS + 200
    assert "000 " in text
    assert "019 " in text
    assert "001 " not in text
    assert "[...]" in text
    assert "x" * MESSAGE_CHARS not in text


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("About tea.\n\nIt is ready.", "About tea. It is ready."),
        ("<think>hm</think># About tea.", "About tea."),
        ("<think>hm", ""),
        (" ... ", ""),
        ("Ein Gespräch über Tee.\u202e", "Ein Gespräch über Tee."),
    ],
)
def test_one_paragraph_is_kept(said: str, kept: str) -> None:
    assert clean_summary(said) == kept


@pytest.mark.parametrize(
    ("summary", "is_about_it"),
    [
        ("The capital of France, which is Paris.", True),
        ("I'm sorry for your loss, but I can't provide a response based on your request.", False),
        ("", False),
    ],
)
def test_a_very_small_model_has_to_speak_of_the_conversation(summary: str, is_about_it: bool) -> None:
    said = [message("user", "What is the capital of France?"), message("assistant", "The capital is Paris.")]
    assert is_about(summary, said) is is_about_it


def test_characters_at_most() -> None:
    kept = clean_summary("tea " * 500)
    assert len(kept) <= MAX_SUMMARY
    assert kept.endswith("tea…")
    assert len(clean_summary("x" * 5_000)) == MAX_SUMMARY
