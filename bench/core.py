"""How fast the pure units of the chat are. Each is the best of several rounds, so that a busy machine shows less."""

import time
from collections.abc import Callable

from bench.rig import Options
from bench.rows import Row
from chat.core.context.prompt import to_model_messages
from chat.core.wire import chunks, frames
from chat.core.wire.accumulator import Accumulator, fold
from sessions_app.core.messages.shapes import Message, Part
from thinkproject.kernel.jsonvalue import dump, load

ROUNDS = 5
WORDS = 5_000


def best_seconds(run: Callable[[], object]) -> float:
    def once() -> float:
        began = time.perf_counter()
        run()
        return time.perf_counter() - began

    return min(once() for _ in range(ROUNDS))


def make_stream(words: int) -> list[chunks.Chunk]:
    deltas = [chunks.text_delta("t", f"word{i} ") for i in range(words)]
    head = [chunks.start("m"), chunks.start_step(), chunks.text_start("t")]
    return [*head, *deltas, chunks.text_end("t"), chunks.finish_step(), chunks.finish("stop")]


def make_history(turns: int) -> list[Message]:
    tool: Part = {
        "type": "tool-add",
        "toolCallId": "c",
        "state": "output-available",
        "input": {"a": 1},
        "output": "x" * 900,
    }
    answer: Message = {
        "id": "a",
        "role": "assistant",
        "parts": [{"type": "step-start"}, tool, {"type": "text", "text": "word " * 200}],
    }
    return [{"id": "u", "role": "user", "parts": [{"type": "text", "text": "hello"}]}, answer] * turns


def encode_all(bodies: list[str]) -> None:
    for seq, body in enumerate(bodies):
        frames.chunk_frame("Jx0pTq8a", body, seq)


def encode_by_dump(bodies: list[str]) -> None:
    for seq, body in enumerate(bodies):
        dump({"type": "cf_agent_use_chat_response", "id": "Jx0pTq8a", "body": body, "done": False, "seq": seq})


def merge_all(stream: list[chunks.Chunk]) -> None:
    last = stream[0]
    for chunk in stream[1:]:
        last = chunks.merge(last, chunk) or chunk


def cases(words: int) -> list[tuple[str, int, Callable[[], object]]]:
    """What is measured: its name, how many things it does, and how."""
    stream, long_stream = make_stream(words), make_stream(words * 10)
    bodies = [dump(chunk) for chunk in stream]
    half = fold(stream[: words // 2])
    history = make_history(250)
    window = {"messages": [{"id": f"m{i}", **message} for i, message in enumerate(make_history(250))]}
    request = dump({"type": "cf_agent_use_chat_request", "id": "R", "init": {"method": "POST", "body": dump(window)}})
    return [
        (f"fold a chunk, of {len(stream):,}", len(stream), lambda: fold(stream)),
        (f"fold a chunk, of {len(long_stream):,}", len(long_stream), lambda: fold(long_stream)),
        ("fold a chunk into a half message", words // 2, lambda: fold(stream[words // 2 :], half)),
        ("decode and fold a chunk", len(stream), lambda: fold(load(body) for body in bodies)),
        ("encode a chunk's JSON", len(stream), lambda: [dump(chunk) for chunk in stream]),
        ("wrap it in a frame", len(bodies), lambda: encode_all(bodies)),
        ("the same by json.dumps", len(bodies), lambda: encode_by_dump(bodies)),
        ("merge two adjacent deltas, of 200", 200, lambda: merge_all(stream[:200])),
        ("validate a chunk", len(stream), lambda: [chunks.validate(chunk) for chunk in stream]),
        ("parse a cancel frame", 1000, lambda: [frames.parse(CANCEL) for _ in range(1000)]),
        (f"parse a request of {len(request) // 1024} KiB", 1, lambda: frames.parse(request)),
        ("prompt of 500 messages", 1, lambda: to_model_messages(history)),
        ("an empty accumulator", 1000, lambda: [Accumulator().message for _ in range(1000)]),
    ]


def run(options: Options) -> list[Row]:
    """Measure; returns the table's rows."""
    words = 200 if options.is_smoke else WORDS
    return [Row(what=name, unit="µs", median=best_seconds(call) / count * 1e6) for name, count, call in cases(words)]


CANCEL = '{"type":"cf_agent_chat_request_cancel","id":"Jx0pTq8a"}'
