"""The oracle notices: one chunk lost, doubled or moved at any place is reported there and nowhere else."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.product import ROOT
from tests.chaos import oracle
from tests.chaos.reading import message_parts

WORDS = [f"word{number} " for number in range(12)]
CALL = '{"time_zone": "UTC"}'
PRODUCT = ("chat", "fibers", "sessions_app", "tools_app", "thinkproject", "django")

Spoil = Any  # one of the three functions below


def lose(items: list[Any], at: int) -> None:
    del items[at]


def double(items: list[Any], at: int) -> None:
    items.insert(at, items[at])


def swap(items: list[Any], at: int) -> None:
    items[at], items[at + 1] = items[at + 1], items[at]


def _chunks() -> list[dict[str, Any]]:
    call = {"toolCallId": "c1", "toolName": "clock"}
    return [
        {"type": "start", "messageId": "a1"},
        {"type": "start-step"},
        {"type": "reasoning-start", "id": "p0"},
        {"type": "reasoning-delta", "id": "p0", "delta": "hm hm"},
        {"type": "reasoning-end", "id": "p0"},
        {"type": "tool-input-start", **call},
        {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": CALL},
        {"type": "tool-input-available", **call, "input": json.loads(CALL)},
        {"type": "tool-output-available", "toolCallId": "c1", "output": "noon"},
        {"type": "finish-step"},
        {"type": "start-step"},
        {"type": "text-start", "id": "p1"},
        *({"type": "text-delta", "id": "p1", "delta": word} for word in WORDS),
        {"type": "text-end", "id": "p1"},
        {"type": "finish-step"},
        {"type": "finish", "finishReason": "stop"},
    ]


@pytest.fixture
def world() -> dict[str, Any]:
    """One answered message: a call, then twelve words; two clients, one page; all agree."""
    records = [json.dumps(chunk) for chunk in _chunks()]
    parts = message_parts(records)
    frames = [
        {"request": "r1", "replay": False, "kind": "chunk", "seq": seq, "body": body}
        for seq, body in enumerate(records)
    ]
    done = {"request": "r1", "replay": False, "kind": "done", "outcome": "completed"}
    asked = {"round": 0, "continues": 0, "mismatch": False, "text": "", "reasoning": "", "calls": [], "end": "finished"}
    said = [{"type": "text", "text": "marker: m1"}]
    user = {"pk": 1, "id": "u1", "parent": None, "role": "user", "parts": said, "turn": "t1", "placed": True}
    answer = {"pk": 2, "id": "a1", "parent": 1, "role": "assistant", "parts": parts, "turn": "t1", "placed": True}
    turn = {
        "turn": "t1",
        "room": "room",
        "request": "r1",
        "assistant": "a1",
        "inputs": ["u1"],
        "status": "completed",
        "reason": "",
        "error": "",
        "seals": 0,
        "started_at": 1.0,
        "finished_at": 2.0,
        "cold": [{"first": 0, "last": 9, "texts": records[:10]}, {"first": 10, "last": 26, "texts": records[10:]}],
        "hot": [[offset, text] for offset, text in enumerate(records)],
        "provider": [
            {**asked, "reasoning": "hm hm", "calls": [{"id": "c1", "name": "clock", "raw": CALL}]},
            {**asked, "round": 1, "text": "".join(WORDS)},
        ],
    }
    client = {
        "room": "room",
        "connections": [[*frames, done]],
        "transcript": [user, answer],
        "sent": ["r1"],
        "ended": ["r1"],
    }
    shown = [{"id": "u1", "texts": ["marker: m1"]}, {"id": "a1", "texts": ["".join(WORDS)]}]
    made = {
        "turns": [turn],
        "rooms": {"room": {"leaf": 2, "messages": [user, answer]}},
        "clients": [{"client": "A", **client}, {"client": "B", **client}],
        "pages": [{"tab": 1, "room": "room", "messages": shown}],
        "requests": [{"room": "room", "request": "r1", "text": "marker: m1", "stopped": False}],
        "kills": [],
    }
    return dict(json.loads(json.dumps(made)))  # nothing is shared: what is spoiled is spoiled in one place


def test_a_world_that_agrees_has_no_differences(world: dict[str, Any]) -> None:
    assert oracle.compare(world) == []


def places(world: dict[str, Any]) -> set[tuple[str, str]]:
    """Where differences are, with their turn."""
    return {(found.turn.split()[-1].removeprefix("room/"), found.place) for found in oracle.compare(world)}


@pytest.mark.parametrize("spoil", [lose, double, swap])
class TestSpoiled:
    def test_cold_log(self, world: dict[str, Any], spoil: Spoil) -> None:
        segment = world["turns"][0]["cold"][1]
        spoil(segment["texts"], 4)
        segment["last"] = segment["first"] + len(segment["texts"]) - 1
        found = oracle.compare(world)
        assert [(item.place, item.at) for item in found] == [("cold log", 14 + (spoil is double))]
        assert {"lose": "lost", "double": "doubled", "swap": "reordered"}[spoil.__name__] in found[0].what

    def test_hot_log(self, world: dict[str, Any], spoil: Spoil) -> None:
        texts = [text for _, text in world["turns"][0]["hot"]]
        spoil(texts, 14)
        world["turns"][0]["hot"] = [[offset, text] for offset, text in enumerate(texts)]
        assert [(item.place, item.at) for item in oracle.compare(world)] == [("hot log", 14 + (spoil is double))]

    def test_hot_log_by_its_offsets(self, world: dict[str, Any], spoil: Spoil) -> None:
        spoil(world["turns"][0]["hot"], 14)
        assert places(world) == {("t1", "hot log")}

    def test_provider(self, world: dict[str, Any], spoil: Spoil) -> None:
        words = list(WORDS)
        spoil(words, 5)
        world["turns"][0]["provider"][1]["text"] = "".join(words)
        assert [(item.place, item.what) for item in oracle.compare(world)] == [
            ("log against provider", f"text of step 1, first differing byte {34 + 6 * (spoil is double)}")
        ]

    def test_call_of_the_provider(self, world: dict[str, Any], spoil: Spoil) -> None:
        pieces = ['{"ti', "me_z", "one", '": "UTC"}']
        spoil(pieces, 1)
        world["turns"][0]["provider"][0]["calls"][0]["raw"] = "".join(pieces)
        try:
            assert places(world) == {("t1", "log against provider")}
        except json.JSONDecodeError:
            pytest.fail("a broken call is a difference, not a crash")

    def test_stored_message(self, world: dict[str, Any], spoil: Spoil) -> None:
        words = list(WORDS)
        spoil(words, 5)
        messages = world["rooms"]["room"]["messages"]
        parts = json.loads(json.dumps(messages[1]["parts"]))
        parts[-1]["text"] = "".join(words)
        messages[1]["parts"] = parts
        found = places(world)
        assert ("t1", "stored message") in found  # and all who show it differ from it
        assert found <= {("t1", p) for p in ("stored message", "client A transcript", "client B transcript", "page 1")}

    def test_client(self, world: dict[str, Any], spoil: Spoil) -> None:
        spoil(world["clients"][0]["connections"][0], 14)
        assert places(world) == {("t1", "client A")}

    def test_last_chunk_of_a_client(self, world: dict[str, Any], spoil: Spoil) -> None:
        spoil(world["clients"][1]["connections"][0], 26)
        assert places(world) == {("t1", "client B")}

    def test_transcript_of_a_client(self, world: dict[str, Any], spoil: Spoil) -> None:
        words = list(WORDS)
        spoil(words, 5)
        transcript = json.loads(json.dumps(world["clients"][0]["transcript"]))
        transcript[1]["parts"][-1]["text"] = "".join(words)
        world["clients"][0]["transcript"] = transcript
        assert places(world) == {("t1", "client A transcript")}

    def test_messages_of_a_client(self, world: dict[str, Any], spoil: Spoil) -> None:
        transcript = list(world["clients"][0]["transcript"])
        spoil(transcript, 0)
        world["clients"][0]["transcript"] = transcript
        assert [item.place for item in oracle.compare(world)] == ["client A transcript"]

    def test_page(self, world: dict[str, Any], spoil: Spoil) -> None:
        words = list(WORDS)
        spoil(words, 5)
        world["pages"][0]["messages"][1]["texts"] = ["".join(words)]
        assert places(world) == {("t1", "page 1")}


def test_request_that_was_never_accepted_is_reported(world: dict[str, Any]) -> None:
    world["requests"].append({"room": "room", "request": "r2", "text": "x", "stopped": False})
    assert [(item.turn, item.place) for item in oracle.compare(world)] == [("room/r2", "database")]


def test_stopped_turn_may_end_early_and_no_other(world: dict[str, Any]) -> None:
    world["turns"][0]["provider"][1]["text"] += "more words"
    world["turns"][0]["status"] = "cancelled"
    assert [item.place for item in oracle.compare(world)] == ["status"]
    world["requests"][0]["stopped"] = True
    assert oracle.compare(world) == []


def test_command_prints_differences_and_fails(world: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "world.json"
    for expected in (0, 1):
        path.write_text(json.dumps(world), encoding="utf-8")
        command = [sys.executable, "-m", "tests.chaos.oracle", "--world", str(path)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == expected, done.stdout + done.stderr
        lose(world["turns"][0]["hot"], 3)
    assert "room/r1 t1 | hot log" in done.stdout


@pytest.mark.parametrize("name", ["oracle.py", "evidence.py", "reading.py"])
def test_oracle_imports_nothing_of_the_product(name: str) -> None:
    tree = ast.parse((ROOT / "tests" / "chaos" / name).read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not [module for module in imported if module.partition(".")[0] in PRODUCT]
    ours = {module for module in imported if module.startswith("tests")}
    assert ours <= {"tests.chaos.evidence", "tests.chaos.reading"}
