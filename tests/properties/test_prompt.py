"""Laws of the prompt: whatever is stored, what a model is asked is valid."""

from hypothesis import given
from hypothesis import strategies as st

from chat.core.context.context_policy import PRESETS, ContextPolicy, truncate
from chat.core.context.prompt import to_model_messages, with_last_calls
from chat.core.model.language_model import (
    AssistantMessage,
    FileContent,
    ModelMessage,
    ReasoningContent,
    TextContent,
    ToolCallContent,
    ToolMessage,
    UserMessage,
)
from chat.core.wire.accumulator import fold
from chat.core.wire.chunks import Chunk
from sessions_app.core.messages.shapes import Message
from tests.properties.chunk_strategies import streams, ui_messages
from thinkproject.kernel.jsonvalue import dump

files = st.sampled_from(
    [None, FileContent(media_type="image/png", data=b"\x89"), FileContent(media_type="text/plain", data=b"\xff")]
)


def check_is_valid(messages: tuple[ModelMessage, ...]) -> None:
    """What every provider asks of a request."""
    assert messages
    assert not isinstance(messages[-1], AssistantMessage)
    open_calls: list[tuple[str, str]] = []
    seen: set[str] = set()
    for before, message in zip((None, *messages), messages, strict=False):
        if isinstance(message, ToolMessage):
            assert (message.call_id, message.tool_name) == open_calls.pop(0)
            dump(message.output).encode()
            assert all(file.media_type.startswith("image/") for file in message.files)
            continue
        assert not open_calls, "a result must follow its call directly"
        assert type(before) is not type(message), "roles alternate"
        check_content(message)
        if isinstance(message, AssistantMessage):
            open_calls = [(c.call_id, c.tool_name) for c in message.content if isinstance(c, ToolCallContent)]
            assert len({call_id for call_id, _ in open_calls} - seen) == len(open_calls), "ids are unique"
            seen.update(call_id for call_id, _ in open_calls)
    assert not open_calls


def check_content(message: UserMessage | AssistantMessage) -> None:
    assert message.content
    assert not isinstance(message.content[-1], ReasoningContent)
    for content in message.content:
        match content:
            case TextContent():
                assert content.text.strip()
                content.text.encode()
            case ToolCallContent():
                assert isinstance(content.input, dict)
                assert content.call_id
                assert 1 <= len(content.tool_name) <= 64
                assert content.tool_name.isascii()
            case ReasoningContent():
                assert content.provider_metadata
            case FileContent():
                assert content.media_type.startswith("image/")


@given(ui_messages, st.booleans(), files)
def test_any_history_makes_a_valid_request(
    history: list[Message], accepts_images: bool, loaded: FileContent | None
) -> None:
    before = dump(history)
    check_is_valid(to_model_messages(history, accepts_images=accepts_images, load_file=lambda _url: loaded))
    assert dump(history) == before


@given(st.lists(streams, max_size=3))
def test_any_streams_cut_anywhere_make_a_valid_request(turns: list[list[Chunk]]) -> None:
    history: list[Message] = []
    for stream in turns:
        history += [{"id": "u", "role": "user", "parts": [{"type": "text", "text": "go"}]}, fold(stream)]
    check_is_valid(to_model_messages(history))


@given(ui_messages)
def test_truncation_loses_no_message_and_no_part(history: list[Message]) -> None:
    cut = truncate(history)
    assert [len(message["parts"]) for message in cut] == [len(message["parts"]) for message in history]


@given(ui_messages, st.sampled_from([*PRESETS.values(), ContextPolicy(max_messages=3, kept_messages=2)]))
def test_every_policy_makes_a_valid_request_and_changes_nothing(history: list[Message], policy: ContextPolicy) -> None:
    before = dump(history)
    check_is_valid(to_model_messages(with_last_calls(history, policy), policy=policy))
    assert dump(history) == before
