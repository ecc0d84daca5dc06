"""Gather what every place says about every turn: the provider's log, Redis, the database. Knows nothing of the product.

The input is a brief (JSON) that the driver wrote: where the places are, what was asked for, and what the clients and
pages held at rest. The output (a world) is plain JSON too, so that a test can spoil it and look whether it is noticed.
"""

import datetime as dt
import json
import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import redis

JSONObject = dict[str, Any]

_TURNS = """
select t.id, i.name, t.request_id, t.trigger, t.assistant_id, t.input_ids, t.position, t.started_at, t.finished_at,
       t.error_text, f.id, f.status, f.reason, f.attempt, t.options
from think_chat_turn t join think_chat_agentinstance i on i.id = t.instance_id join think_fibers_fiber f
on f.id = t.fiber_id order by i.name, t.position
"""
_SEGMENTS = "select stream, first_offset, last_offset, data from think_chat_streamsegment order by stream, first_offset"
_STEPS = "select fiber_id, step_key, value from think_fibers_fiberstep order by id"
_MESSAGES = """
select i.name, m.id, m.message_id, m.parent_id, m.role, m.content, m.turn_id, m.placed_at, s.active_leaf_id
from think_sessions_message m join think_sessions_session s on s.id = m.session_id join think_chat_agentinstance i
on i.session_id = s.id order by m.id
"""


def collect(brief: JSONObject) -> JSONObject:
    """Return the world of a brief. Shape: `turns`, `rooms` (by name: `messages`, `leaf`), and the brief's own lists."""
    turns, rooms = _read_turns(brief["database"]), read_rooms(brief["database"])
    _add_provider(turns, rooms, Path(brief["provider_log"]))
    _add_hot(turns, brief["redis"])
    own = ("requests", "clients", "views", "kills")
    return {"turns": turns, "rooms": rooms, **{key: brief.get(key, []) for key in own}}


def query(address: str, sql: str) -> list[Sequence[Any]]:
    """Read from the database at a PostgreSQL address or an SQLite path."""
    if address.startswith("postgres"):
        with psycopg.connect(address) as postgres:
            return list(postgres.execute(sql.encode()).fetchall())
    connection = sqlite3.connect(f"file:{address}?mode=ro", uri=True, timeout=10)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def seconds_of(moment: Any) -> float | None:
    """Seconds since 1970 of an instant as a database gives it; without a zone it is UTC."""
    if moment is None:
        return None
    if isinstance(moment, str):
        moment = dt.datetime.fromisoformat(moment)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return float(moment.timestamp())


def _read_turns(address: str) -> list[JSONObject]:
    segments: dict[str, list[JSONObject]] = {}
    for stream, first, last, data in query(address, _SEGMENTS):
        segments.setdefault(stream, []).append({"first": first, "last": last, "texts": data.split("\n")})
    steps: dict[str, list[tuple[str, Any]]] = {}
    for fiber, key, value in query(address, _STEPS):
        steps.setdefault(fiber, []).append((key, json.loads(value) if value else None))
    return [_turn(row, segments.get(row[0], []), steps.get(row[10], [])) for row in query(address, _TURNS)]


def _turn(row: Sequence[Any], segments: list[JSONObject], steps: list[tuple[str, Any]]) -> JSONObject:
    names = ("turn", "room", "request", "trigger", "assistant")
    is_seal = [key.startswith("model:") and isinstance(value, dict) and value.get("sealed") for key, value in steps]
    return {
        **dict(zip(names, row[:5], strict=True)),
        "inputs": json.loads(row[5]),
        "position": row[6],
        "started_at": seconds_of(row[7]),
        "finished_at": seconds_of(row[8]),
        "error": row[9],
        "status": row[11],
        "reason": row[12],
        "attempt": row[13],
        "answers": json.loads(row[14]).get("answers", []),
        "seals": sum(bool(sealed) for sealed in is_seal),
        "cold": segments,
        "hot": [],
        "provider": [],
    }


def read_rooms(address: str) -> dict[str, JSONObject]:
    """Read each conversation: its messages with their places in the tree, and the leaf of the path that is shown."""
    rooms: dict[str, JSONObject] = {}
    for name, pk, message_id, parent, role, content, turn, placed, leaf in query(address, _MESSAGES):
        room = rooms.setdefault(name, {"leaf": leaf, "messages": []})
        room["messages"].append(
            {
                "pk": pk,
                "id": message_id,
                "parent": parent,
                "role": role,
                "parts": json.loads(content)["parts"],
                "turn": turn,
                "placed": placed is not None,
            }
        )
    return rooms


def _add_hot(turns: list[JSONObject], address: str) -> None:
    with redis.Redis.from_url(address, decode_responses=True, socket_timeout=10) as client:
        for turn in turns:
            entries: Any = client.xrange(f"think:{{{turn['turn']}}}:log")
            turn["hot"] = [[int(key.partition("-")[2]) - 1, fields["d"]] for key, fields in entries]


def _add_provider(turns: list[JSONObject], rooms: dict[str, JSONObject], log: Path) -> None:
    """Give each request of the log to its turn: the last one of that marker that had started when it came."""
    answered = _turns_by_marker(turns, rooms)
    by_request: dict[str, JSONObject] = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if entry["kind"] == "request":
            kept = {key: entry[key] for key in ("request", "marker", "round", "continues", "mismatch", "at")}
            request = {**kept, "text": "", "reasoning": "", "calls": [], "end": ""}
            by_request[entry["request"]] = request
            begun = [t for t in answered.get(_marker_asked(entry["body"]), ()) if t["started_at"] <= entry["at"]]
            if begun:
                begun[-1]["provider"].append(request)
        elif entry["kind"] == "chunk":
            _add_bytes(by_request[entry["request"]], entry["bytes"])
        elif entry["kind"] == "end":
            by_request[entry["request"]]["end"] = entry["how"]


def _turns_by_marker(turns: list[JSONObject], rooms: dict[str, JSONObject]) -> dict[str, list[JSONObject]]:
    """Started turns by the marker of the message they answer, in order of their start."""
    texts = {(name, m["id"]): text_of(m["parts"]) for name, room in rooms.items() for m in room["messages"]}
    found: dict[str, list[JSONObject]] = {}
    for turn in sorted((t for t in turns if t["started_at"] is not None), key=lambda t: float(t["started_at"])):
        for answer in turn["answers"]:
            found.setdefault(marker_of(texts.get((turn["room"], answer), "")), []).append(turn)
    return found


def _marker_asked(body: JSONObject) -> str:
    users = [_content(message.get("content")) for message in body["messages"] if message["role"] == "user"]
    return next((marker for text in reversed(users) if (marker := marker_of(text))), "")


def _content(content: Any) -> str:
    if isinstance(content, list):
        return "\n\n".join(str(part.get("text", "")) for part in content)
    return str(content or "")


def text_of(parts: list[JSONObject]) -> str:
    """All text of a message's parts."""
    return "".join(part["text"] for part in parts if part["type"] == "text")


def marker_of(text: str) -> str:
    """The last `marker: NAME` line of a script; unanswered messages may stand before it in one request."""
    found = re.findall(r"^marker: (\S+)", text, re.MULTILINE)
    return found[-1] if found else ""


def _add_bytes(request: JSONObject, data: str) -> None:
    """Add what one server-sent event carries. Source: Chat Completions, streaming."""
    for line in data.split("\n"):
        if not line.startswith("data: {"):
            continue
        delta = json.loads(line[6:])["choices"][0]["delta"]
        request["text"] += delta.get("content") or ""
        request["reasoning"] += delta.get("reasoning_content") or ""
        for call in delta.get("tool_calls") or ():
            while len(request["calls"]) <= call["index"]:
                request["calls"].append({"id": "", "name": "", "raw": ""})
            known = request["calls"][call["index"]]
            known["id"] = call.get("id") or known["id"]
            known["name"] = call["function"].get("name") or known["name"]
            known["raw"] += call["function"].get("arguments") or ""
