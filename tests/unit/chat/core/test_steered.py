"""A message that an answer took in is read where it stands: by models, summaries, counts and the search."""

from typing import Any

from chat.core.context.prompt import to_model_messages
from chat.core.model.language_model import AssistantMessage, TextContent, ToolMessage, UserMessage
from chat.core.wire import chunks
from chat.core.wire.accumulator import fold
from sessions_app.core.compaction.compaction import shown_message
from sessions_app.core.compaction.tokens import estimate_message
from sessions_app.core.messages.shapes import Message
from sessions_app.core.messages.steered import steered_in
from sessions_app.core.search.words import text_of

SAID: Any = {"id": "s1", "parts": [{"type": "text", "text": "shorter please"}], "sentAt": "2026-01-01T12:00:00+00:00"}


def answer(*, is_steered: bool = True) -> Message:
    steer = [chunks.steer(SAID), chunks.steer(SAID)] if is_steered else []  # as a recovered turn may say it again
    return fold(
        [
            chunks.start("a1"),
            chunks.start_step(),
            chunks.text_start("p0"),
            chunks.text_delta("p0", "Let me look."),
            chunks.text_end("p0"),
            chunks.tool_input_available("c1", "look", {}),
            chunks.tool_output_available("c1", "seen"),
            chunks.finish_step(),
            *steer,
            chunks.start_step(),
            chunks.text_start("p1"),
            chunks.text_delta("p1", "Short."),
            chunks.text_end("p1"),
            chunks.finish_step(),
        ]
    )


def test_the_prompt_is_split_where_the_person_spoke() -> None:
    asked: Message = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "look"}]}
    made = to_model_messages([asked, answer()])
    kinds = [type(message) for message in made[:5]]
    assert kinds == [UserMessage, AssistantMessage, ToolMessage, UserMessage, AssistantMessage]
    said = [part.text for part in made[3].content if isinstance(part, TextContent)]  # type: ignore[union-attr]
    assert said[0] == "shorter please"
    assert said[1].startswith("[Sent Thursday 2026-01-01 12:00")


def test_it_stands_in_the_answer_once_and_everyone_reads_it() -> None:
    assert [each["id"] for each in steered_in(answer())] == ["s1"]
    assert text_of(answer()["parts"]) == "Let me look.\nshorter please\nShort."
    assert "(the user said meanwhile: shorter please)" in shown_message(answer())
    assert estimate_message(answer()) > estimate_message(answer(is_steered=False))
