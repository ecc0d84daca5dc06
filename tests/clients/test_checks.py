"""The checks of this folder see what they are there to see: a line that lies makes each of them fail.

Between one tab and the server a proxy changes frames; whatever the lie, `Room.rest` must not pass.
"""

import asyncio
import json
from collections.abc import Iterator
from functools import partial

import pytest
from playwright.sync_api import WebSocketRoute

from tests.clients.room import Room, check_frames, check_renders
from tests.clients.tab import text_of

CHUNK, TRANSCRIPT = "cf_agent_use_chat_response", "cf_agent_chat_messages"


class Liar:
    """Changes what the server sends to one tab. Lies to text chunks begin at the fifth one."""

    def __init__(self, lie: str) -> None:
        self._lie = lie
        self._texts = 0
        self._kept: list[str] = []

    def route(self, socket: WebSocketRoute) -> None:
        """Stand between a page and the server."""
        server = socket.connect_to_server()
        socket.on_message(server.send)
        server.on_message(partial(self._pass_on, socket))

    def route_late(self, socket: WebSocketRoute) -> None:
        """Stand between them and keep each answer to a probe back for half a second."""
        server = socket.connect_to_server()
        socket.on_message(server.send)

        def pass_on(text: str | bytes) -> None:
            late = 0.5 if json.loads(text)["type"] == "cf_agent_stream_resume_none" else 0.0
            asyncio.get_running_loop().call_later(late, socket.send, text)

        server.on_message(pass_on)

    def _pass_on(self, socket: WebSocketRoute, text: str | bytes) -> None:
        for sent in self.tell(str(text)):
            socket.send(sent)

    def tell(self, text: str) -> Iterator[str]:
        """What the page is sent in place of a frame."""
        frame = json.loads(text)
        chunk = json.loads(frame["body"]) if frame["type"] == CHUNK and frame["body"].startswith("{") else {}
        if chunk.get("type") == "text-delta":
            self._texts += 1
            yield from self._about_text(text, self._texts)
        elif chunk.get("type") == "start" and self._lie == "other id":
            yield json.dumps({**frame, "body": json.dumps({**chunk, "messageId": "msg_other"})})
        elif frame["type"] == TRANSCRIPT and self._lie == "empty transcript" and self._texts:
            yield json.dumps({**frame, "messages": []})
        elif frame.get("done") and self._lie == "no end":
            return
        elif frame.get("done") and self._lie == "chunk after the end":
            yield text
            yield json.dumps(
                {**frame, "done": False, "body": json.dumps({"type": "text-delta", "id": "p0", "delta": "!"})}
            )
        else:
            yield text

    def _about_text(self, text: str, number: int) -> Iterator[str]:
        if self._lie == "lost" and number == 5:
            return
        if self._lie == "swapped" and number == 5:
            self._kept.append(text)
            return
        yield text
        if self._lie == "doubled" and number == 5:
            yield text
        yield from self._kept
        self._kept.clear()


@pytest.mark.smoke("own-lost")
@pytest.mark.parametrize(
    ("lie", "complaint"),
    [
        ("lost", "differs|never said"),
        ("doubled", "differs|never said"),
        ("swapped", "differs|never said"),
        ("other id", "differs from the stored transcript"),
        ("empty transcript", "differs from the stored transcript|did not stay"),  # sent after all the text was there
        ("no end", "rest did not come"),
        ("chunk after the end", "differs|never said|rest did not come"),
    ],
)
@pytest.mark.parametrize("is_own", [True, False], ids=["own", "observed"])
def test_a_lie_is_seen(room: Room, lie: str, complaint: str, is_own: bool) -> None:
    tab = room.open("first", liar=Liar(lie).route if is_own else None)
    observer = room.open("observer", liar=None if is_own else Liar(lie).route)
    room.ask(tab, "stream 30 words at 30/s")  # slowly, or all of it comes at once when the machine is busy
    (observer if is_own else tab).wait("harness.events.some(event => event.kind === 'turn-end')")
    with pytest.raises(AssertionError, match=complaint):
        room.rest(seconds=1.5)


@pytest.mark.smoke
def test_without_a_lie_all_is_well(room: Room) -> None:
    tab = room.open("first", liar=Liar("none").route)
    room.open("observer", liar=Liar("none").route)
    room.ask_and_rest(tab, "stream 20 words at 80/s")
    assert text_of(room.rest()[1]) == room.answers()[0]


def test_a_tab_is_open_once_its_probe_is_answered(room: Room) -> None:
    tab = room.open("first", liar=Liar("none").route_late)
    room.ask_and_rest(tab, "wait 1 s\nstream 20 words at 80/s")
    assert tab.statuses() == ["ready", "submitted", "streaming", "ready"]


@pytest.mark.smoke
def test_bad_sequences_of_frames_are_seen(room: Room) -> None:
    tab, observer = room.open_two()
    room.ask_and_rest(tab, "stream 10 words at 80/s")
    room.rest()
    for watched in (tab, observer):
        [frames] = watched.by_socket()
        check_frames(frames, "the truth")
        kinds = [frame["type"] for _, frame in frames]
        last_transcript = len(kinds) - 1 - kinds[::-1].index(TRANSCRIPT)
        chunks = [at for at, (_, frame) in enumerate(frames) if "seq" in frame]
        end = next(at for at, (_, frame) in enumerate(frames) if frame.get("done"))
        lies = {
            "no transcript": frames[:last_transcript] + frames[last_transcript + 1 :],
            "instead of": frames[: chunks[4]] + frames[chunks[5] :],
            "got chunk": [*frames[: chunks[4]], frames[chunks[5]], frames[chunks[4]], *frames[chunks[6] :]],
            "after its end": [*frames, frames[chunks[4]]],
            "second end": [*frames, frames[end]],
        }
        for complaint, lie in lies.items():
            with pytest.raises(AssertionError, match=complaint):
                check_frames(lie, "a lie")


def test_bad_pictures_are_seen() -> None:
    answers = ["one two three four five six seven"]
    question = {"id": "u1", "role": "user", "text": "?"}

    def show(*texts: str, ids: str = "ab") -> list[dict[str, object]]:
        said = [{"id": key, "role": "assistant", "text": text} for key, text in zip(ids, texts, strict=False)]
        return [{"messages": [question, *said]}]

    check_renders(show("one two three"), answers, "the truth")
    for complaint, lie in {
        "never said": show("one one two"),
        "same answer twice": show(answers[0], answers[0]),
        "two messages with the id": show("one", "one two", ids="aa"),
        "without its question": show("one", "one two"),
    }.items():
        with pytest.raises(AssertionError, match=complaint):
            check_renders(lie, answers, "a lie")
