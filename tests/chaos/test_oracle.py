"""The oracle notices: one chunk lost, doubled or moved at any place is reported there and nowhere else."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.product import ROOT
from tests.chaos import oracle, tally
from tests.chaos.reading import message_parts
from tests.chaos.spoiling import double, lose, swap

pytestmark = pytest.mark.smoke

WORDS = [f"word{number} " for number in range(12)]
CALL = '{"time_zone": "UTC"}'
PRODUCT = ("chat", "fibers", "sessions_app", "tools_app", "thinkproject", "django")

VIEWS = ("client A transcript", "client B transcript", "sdk7 published", "page 1 page")

Spoil = Any  # one of `tests.chaos.spoiling`


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


def _views(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What two clients, a published hook and a page hold of a path with one call and one text."""
    sections = [["Arguments", '{\n  "time_zone": "UTC"\n}'], ["Result", "noon"]]
    answer = [
        {"kind": "reasoning", "text": "hm hm"},
        {"kind": "tool", "name": "Tool: clock", "title": "Clock", "state": "output-available", "sections": sections},
        {"kind": "text", "text": "".join(WORDS).strip() + "\n"},
    ]
    shown = [
        {"id": "u1", "role": "user", "parts": [{"kind": "text", "text": "marker: m1"}]},
        {"id": "a1", "role": "assistant", "parts": answer},
    ]
    view = {"room": "room", "leaf": 2, "is_at_rest": True}
    return [
        {**view, "place": "client A", "kind": "transcript", "messages": messages},
        {**view, "place": "client B", "kind": "transcript", "messages": messages},
        {**view, "place": "sdk7", "kind": "published", "messages": messages},
        {**view, "place": "page 1", "kind": "page", "messages": shown},
    ]


@pytest.fixture
def world() -> dict[str, Any]:
    """One answered message: a call, then twelve words; two clients, a published one, a page; all agree."""
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
        "started_at": 100.0,
        "finished_at": 101.0,
        "cold": [{"first": 0, "last": 9, "texts": records[:10]}, {"first": 10, "last": 26, "texts": records[10:]}],
        "hot": [[offset, text] for offset, text in enumerate(records)],
        "provider": [
            {**asked, "reasoning": "hm hm", "calls": [{"id": "c1", "name": "clock", "raw": CALL}]},
            {**asked, "round": 1, "text": "".join(WORDS)},
        ],
    }
    line = {"opened": 0.0, "closed": None, "frames": [*frames, done]}
    client = {"room": "room", "connections": [line], "sent": ["r1"], "ended": ["r1"]}
    made = {
        "turns": [turn],
        "rooms": {"room": {"leaf": 2, "messages": [user, answer]}},
        "clients": [{"client": name, **client} for name in ("A", "B", "sdk7")],
        "views": _views([user, answer]),
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
        assert found == {("t1", place) for place in ("stored message", *VIEWS)}

    @pytest.mark.parametrize("client", [0, 1, 2], ids=["plain", "other", "published"])
    def test_client(self, world: dict[str, Any], spoil: Spoil, client: int) -> None:
        held = world["clients"][client]
        spoil(held["connections"][0]["frames"], 14)
        assert places(world) == {("t1", f"client {held['client']}")}

    def test_last_chunk_of_a_client(self, world: dict[str, Any], spoil: Spoil) -> None:
        spoil(world["clients"][1]["connections"][0]["frames"], 26)
        assert places(world) == {("t1", "client B")}

    @pytest.mark.parametrize("view", [0, 1, 2], ids=VIEWS[:3])
    def test_text_of_a_view(self, world: dict[str, Any], spoil: Spoil, view: int) -> None:
        words = list(WORDS)
        spoil(words, 5)
        world["views"][view]["messages"][1]["parts"][-1]["text"] = "".join(words)
        assert places(world) == {("t1", VIEWS[view])}

    @pytest.mark.parametrize("view", [0, 2, 3], ids=[VIEWS[0], *VIEWS[2:]])
    def test_messages_of_a_view(self, world: dict[str, Any], spoil: Spoil, view: int) -> None:
        spoil(world["views"][view]["messages"], 0)
        assert [item.place for item in oracle.compare(world)] == [VIEWS[view]]

    def test_text_of_a_page(self, world: dict[str, Any], spoil: Spoil) -> None:
        words = list(WORDS)
        spoil(words, 5)
        world["views"][3]["messages"][1]["parts"][2]["text"] = "".join(words)
        assert places(world) == {("t1", "page 1 page")}

    def test_parts_of_a_page(self, world: dict[str, Any], spoil: Spoil) -> None:
        spoil(world["views"][3]["messages"][1]["parts"], 1)
        assert places(world) == {("t1", "page 1 page")}

    def test_call_of_a_page(self, world: dict[str, Any], spoil: Spoil) -> None:
        spoil(world["views"][3]["messages"][1]["parts"][1]["sections"], 0)
        assert places(world) == {("t1", "page 1 page")}


@pytest.mark.parametrize("key", ["name", "title", "state"])
def test_line_of_a_call_that_a_page_shows_otherwise_is_reported(world: dict[str, Any], key: str) -> None:
    world["views"][3]["messages"][1]["parts"][1][key] += "x"
    assert places(world) == {("t1", "page 1 page")}


def test_seam_that_a_page_does_not_show_is_reported(world: dict[str, Any]) -> None:
    turn, [_, stored] = world["turns"][0], world["rooms"]["room"]["messages"]
    seam = {"type": "data-think-resumed", "id": "p1:6", "data": {"offset": 6}}
    records = [*turn["hot"][:-2], [25, json.dumps(seam)], *([at + 1, text] for at, text in turn["hot"][-2:])]
    texts = [text for _, text in records]
    turn.update(hot=records, cold=[{"first": 0, "last": len(texts) - 1, "texts": texts}])
    stored["parts"] = message_parts(texts)
    world["clients"].clear()
    del world["views"][:3]
    assert places(world) == {("t1", "page 1 page")}
    world["views"][0]["messages"][1]["parts"].append({"kind": "seam"})
    assert oracle.compare(world) == []


def test_what_is_tried_and_never_done_is_reported() -> None:
    acts = {"edit (page)": [False, False, False], "stop (page)": [False, True, False], "again (page)": [False]}
    assert tally.idle(acts) == ["edit (page): tried 3 times, never done"]


def test_replay_from_the_beginning_is_no_difference_for_any_client(world: dict[str, Any]) -> None:
    for client in world["clients"]:
        frames = client["connections"][0]["frames"]
        again = [{**frame, "replay": True} for frame in frames[:-1]]
        client["connections"][0]["frames"] = [*frames[:14], *again, frames[-1]]
    assert oracle.compare(world) == []


class TestMissed:
    def test_client_that_was_there_and_got_nothing(self, world: dict[str, Any]) -> None:
        world["clients"][0]["connections"][0]["frames"].clear()
        assert places(world) == {("t1", "client A")}

    def test_a_present_client_that_never_received_the_end(self, world: dict[str, Any]) -> None:
        world["clients"][0]["connections"][0]["frames"].pop()
        assert places(world) == {("t1", "client A")}

    def test_client_that_came_later_or_left_earlier_need_not_have_it(self, world: dict[str, Any]) -> None:
        world["clients"][0]["connections"][0] |= {"opened": 100.5, "frames": []}
        world["clients"][1]["connections"][0] |= {"closed": 100.5, "frames": []}
        assert oracle.compare(world) == []

    def test_page_that_does_not_come_to_rest(self, world: dict[str, Any]) -> None:
        world["views"][3]["is_at_rest"] = False
        assert [(item.turn, item.place) for item in oracle.compare(world)] == [("room", "page 1 page")]

    def test_answer_that_no_client_was_shown_is_too_little_compared(self, world: dict[str, Any]) -> None:
        assert tally.shortfalls(world) == []
        world["rooms"]["room"]["leaf"] = 1
        for view in world["views"]:
            view.update(leaf=1, messages=view["messages"][:1])
        assert oracle.compare(world) == []
        assert [line.partition(":")[0] for line in tally.shortfalls(world)] == [
            "transcript of every client",
            "published hook",
            "page",
        ]

    @pytest.mark.parametrize(
        ("place", "name"), [("hot", "hot log, from its beginning"), ("cold", "cold log"), ("provider", "provider")]
    )
    def test_place_that_is_empty_is_too_little_compared(self, world: dict[str, Any], place: str, name: str) -> None:
        world["turns"][0][place] = []
        assert name in [line.partition(":")[0] for line in tally.shortfalls(world)]

    def test_stream_that_no_client_got_whole_is_too_little_compared(self, world: dict[str, Any]) -> None:
        for client in world["clients"]:
            client["connections"] = []
        assert [line.partition(":")[0] for line in tally.shortfalls(world)] == ["whole stream at a client"]

    def test_published_client_whose_requests_are_lost_is_too_little_compared(self, world: dict[str, Any]) -> None:
        lost = {"room": "room", "request": None, "text": "marker: m2", "stopped": False, "by": "published"}
        world["requests"].append({**lost, "is_lost": True})
        assert oracle.compare(world) == []
        assert [line.partition(":")[0] for line in tally.shortfalls(world)] == ["asked of a published hook, accepted"]


def test_request_that_was_never_accepted_is_reported(world: dict[str, Any]) -> None:
    world["requests"].append({"room": "room", "request": "r2", "text": "x", "stopped": False})
    assert [(item.turn, item.place) for item in oracle.compare(world)] == [("room/r2", "database")]


def test_stopped_turn_may_end_early_and_no_other(world: dict[str, Any]) -> None:
    world["turns"][0]["provider"][1]["text"] += "more words"
    world["turns"][0]["status"] = "cancelled"
    assert [item.place for item in oracle.compare(world)] == ["status"]
    world["requests"][0]["stopped"] = True
    assert oracle.compare(world) == []


def test_written_calls_of_a_sealed_step_may_be_cut_and_of_no_other(world: dict[str, Any]) -> None:
    turn = world["turns"][0]
    turn["provider"][0]["calls"].append({"id": "c2", "name": "clock", "raw": CALL})
    call = {"toolCallId": "c1", "toolName": "clock", "input": {}, "errorText": "cut"}
    records = [json.dumps(chunk) for chunk in _chunks()]
    start = {"type": "tool-input-start", "toolCallId": "c2", "toolName": "clock"}
    cut = [{"type": "tool-input-error", **call}, {"type": "tool-input-error", **call, "toolCallId": "c2"}]
    records[7:9] = [json.dumps(chunk) for chunk in (start, *cut)]
    turn.update(cold=[{"first": 0, "last": len(records) - 1, "texts": records}], hot=list(enumerate(records)))
    world["rooms"]["room"]["messages"][1]["parts"] = message_parts(records)
    world.update(clients=[], views=[])
    assert [item.place for item in oracle.compare(world)] == ["log against provider"]
    turn["seals"] = 1
    assert oracle.compare(world) == []


def test_request_that_was_accepted_twice_is_reported(world: dict[str, Any]) -> None:
    world["requests"][0].update(request=None, by="page")
    world["turns"].append({**world["turns"][0], "turn": "t2", "request": "r2"})
    assert ("m1", "database") in places(world)


def test_command_prints_differences_and_fails(world: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "world.json"
    for expected in (0, 1):
        path.write_text(json.dumps(world), encoding="utf-8")
        command = [sys.executable, "-m", "tests.chaos.oracle", "--world", str(path)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == expected, done.stdout + done.stderr
        lose(world["turns"][0]["hot"], 3)
    assert "room/r1 t1 | hot log" in done.stdout


OURS = ("difference", "evidence", "oracle", "reading", "tally", "views")


@pytest.mark.parametrize("name", [f"{name}.py" for name in OURS])
def test_oracle_imports_nothing_of_the_product(name: str) -> None:
    tree = ast.parse((ROOT / "tests" / "chaos" / name).read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not [module for module in imported if module.partition(".")[0] in PRODUCT]
    ours = {module for module in imported if module.startswith("tests")}
    assert ours <= {f"tests.chaos.{name}" for name in OURS}
