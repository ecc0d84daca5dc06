"""Folding the recorded chunks gives the messages of the recorded transcripts."""

from dataclasses import dataclass, field

import pytest

from chat.core.wire import chunks as wire_chunks
from chat.core.wire.accumulator import Accumulator, fold
from chat.core.wire.chunks import Chunk
from tests.wire.recordings import NAMES, amended, events
from thinkproject.kernel.jsonvalue import JSONObject


@dataclass(slots=True)
class Stream:
    """What one client got of one request, up to its end."""

    name: str
    client: str
    request_id: str
    chunks: list[Chunk] = field(default_factory=list)
    transcript: list[JSONObject] | None = None  # the first one between the last chunk and the end
    is_over: bool = False
    is_replay: bool = False


def streams(name: str) -> list[Stream]:
    found: dict[tuple[str, str], Stream] = {}
    for event in events(name):
        frame = event.frame
        if event.direction != "in":
            continue
        if frame["type"] == "cf_agent_use_chat_response":
            request_id = frame["id"]
            stream = found.setdefault((event.client, request_id), Stream(name, event.client, request_id))
            if "$body" in frame:
                if frame.get("replay") and frame["seq"] == 0:
                    stream.chunks.clear()
                    stream.is_replay = True
                stream.chunks.append(frame["$body"])
                stream.transcript = None
            stream.is_over = stream.is_over or frame["done"]
        elif frame["type"] == "cf_agent_chat_messages":
            for stream in found.values():
                if stream.client == event.client and not stream.is_over and stream.transcript is None:
                    stream.transcript = frame["messages"]
    return list(found.values())


def is_listed(stream: Stream) -> str | None:
    return amended("fold").get(f"{stream.name}/{stream.request_id}")


def label(stream: Stream) -> str:
    return f"{stream.name}-{stream.request_id}-{stream.client}"


ALL = [stream for name in NAMES for stream in streams(name) if stream.is_over and stream.chunks]
UNSTORED = [stream for stream in ALL if stream.transcript is None and not stream.is_replay]


@pytest.mark.parametrize("stream", [s for s in ALL if s.transcript and not is_listed(s)], ids=label)
def test_fold_is_the_message_of_the_transcript(stream: Stream) -> None:
    message = fold(stream.chunks)
    assert message in (stream.transcript or [])


@pytest.mark.parametrize("stream", UNSTORED, ids=label)
def test_stream_without_content_is_not_stored(stream: Stream) -> None:
    accumulator = Accumulator()
    for chunk in stream.chunks:
        accumulator.apply(chunk)
    assert not accumulator.has_parts


@pytest.mark.parametrize("stream", [s for s in ALL if is_listed(s) == "continuation-id"], ids=label)
def test_continuation_differs_from_the_recording_in_its_stamped_id_only(stream: Stream) -> None:
    transcript = stream.transcript or []
    assert fold(stream.chunks) not in transcript
    stamped = wire_chunks.start(transcript[-1]["id"])
    assert fold([stamped, *stream.chunks[1:]]) == transcript[-1]


def test_recovered_turn_goes_on_in_the_open_part() -> None:
    """The recording starts a second message part and a second request; ours is one message and one part."""
    first, second = (s for s in ALL if is_listed(s) == "recovery-in-place")
    said = [chunk for chunk in second.chunks if chunk["type"] not in ("start", "start-step", "text-start")]
    ours = fold(first.chunks + said)
    recorded = (second.transcript or [])[-1]
    assert ours["id"] == recorded["id"]
    texts = [part["text"] for part in recorded["parts"] if part["type"] == "text"]
    assert [part["text"] for part in ours["parts"] if part["type"] == "text"] == ["".join(texts)]


def test_every_listed_fold_is_recorded() -> None:
    known = {f"{stream.name}/{stream.request_id}" for stream in ALL}
    assert set(amended("fold")) <= known
    assert len([s for s in ALL if s.transcript and not is_listed(s)]) > 25


def test_every_target_of_the_list_is_a_recording() -> None:
    targets = [target for check in ("fold", "handshake", "frames") for target in amended(check)]
    targets.remove("everywhere")
    assert len(targets) > 8
    assert {target.partition("/")[0] for target in targets} <= set(NAMES)
