"""Gather the rows and the ledger that `rules` looks at, and watch which fibers are taken over. Imports no product."""

import asyncio
import json
import re
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg

from tests.chaos.evidence import query, seconds_of, text_of

JSONObject = dict[str, Any]
LOOK_SECONDS = 0.1

_TURNS = """
select t.id, t.request_id, t.error_text, t.finished_at, f.status from think_chat_turn t
join think_fibers_fiber f on f.id = t.fiber_id
"""
_FIBERS = "select id, name, status, lease_until from think_fibers_fiber"
_MESSAGES = "select session_id, message_id, role, content from think_sessions_message"
_RUNS = """
select r.schedule_id, r.due_at, r.is_test, f.key, f.status from think_fibers_schedulerun r
join think_fibers_fiber f on f.id = r.fiber_id
"""
_CALLS = "select turn_id, call_id, tool_name, status, output, attempt from think_tools_toolcallrecord order by id"
_OCCURRENCES = """
select r.id, r.schedule_id, r.due_at, r.created_at, f.finished_at from think_fibers_schedulerun r
join think_fibers_fiber f on f.id = r.fiber_id where not r.is_test
"""
# Calls of executors wait for theirs to be started again: no other process takes them over.
_HELD = "select id, status, worker, attempt from think_fibers_fiber where attempt > 0 and name not like 'chat.tool:%'"


def gather(address: str, ledger: Path) -> JSONObject:
    """Read all of it. Shape: as `rules` describes it."""
    lines = ledger.read_text(encoding="utf-8").splitlines() if ledger.exists() else []
    return {
        "turns": [
            {"id": pk, "request": request, "error": error, "finished_at": ended and str(ended), "status": status}
            for pk, request, error, ended, status in query(address, _TURNS)
        ],
        "fibers": [
            {"id": pk, "name": name, "status": status, "is_leased": lease is not None}
            for pk, name, status, lease in query(address, _FIBERS)
        ],
        "messages": [
            {"room": room, "id": pk, "role": role, "text": text_of(json.loads(content)["parts"]), "content": content}
            for room, pk, role, content in query(address, _MESSAGES)
        ],
        "runs": [
            {"schedule": schedule, "due": str(due), "is_test": bool(is_test), "key": key, "status": status}
            for schedule, due, is_test, key, status in query(address, _RUNS)
        ],
        "calls": [
            {"turn": turn, "id": pk, "tool": tool, "status": status, "output": output, "attempt": attempt}
            for turn, pk, tool, status, output, attempt in query(address, _CALLS)
        ],
        "ledger": [json.loads(line) for line in lines],
    }


class Occurrences:
    """Watches the runs of schedules: the product keeps the last ones only."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._found: dict[int, JSONObject] = {}

    async def watch(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(1.0)  # between two looks

    async def look(self) -> None:
        """Take what there is now; nothing while the database is away."""
        try:
            rows = await asyncio.to_thread(query, self._address, _OCCURRENCES)
        except (psycopg.Error, sqlite3.Error):
            return
        for pk, schedule, *moments in rows:
            due, began, ended = map(seconds_of, moments)
            self._found[pk] = {"schedule": schedule, "due": due, "began": began, "ended": ended}

    @property
    def found(self) -> list[JSONObject]:
        """Occurrences that began, in order. Shape: `{schedule, due, began, ended}`; units: seconds since 1970."""
        return sorted(self._found.values(), key=lambda each: (each["schedule"], each["due"]))


class Takeovers:
    """Watches the attempts of all fibers: which one a killed worker had, and when its next attempt began."""

    def __init__(self, address: str, kills: Sequence[JSONObject]) -> None:
        self.found: list[JSONObject] = []
        self._address = address
        self._kills = kills
        self._held: dict[str, tuple[str, int]] = {}

    async def watch(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            try:
                rows = await asyncio.to_thread(query, self._address, _HELD)
            except (psycopg.Error, sqlite3.Error):  # the database is one of those that are killed
                rows = []
            self._note(rows, time.time())
            await asyncio.sleep(LOOK_SECONDS)  # between two looks

    def _note(self, rows: Sequence[Sequence[Any]], now: float) -> None:
        for pk, status, worker, attempt in rows:
            held, before = self._held.get(pk, ("", 0))
            if attempt > before and held:
                pids = {int(number) for number in re.findall(r"\d+", held)}
                # A worker that only stood still may have gone on with what it had: that is no takeover.
                killed = [kill["at"] for kill in self._kills if kill["how"] == "kill" and kill["pid"] in pids - {0}]
                if killed:
                    self.found.append({"fiber": pk, "killed_at": killed[-1], "next_at": now})
            if status == "running" or attempt > before:
                self._held[pk] = (worker, attempt)
            elif status != "pending":  # parked or over: its worker has let it go
                self._held[pk] = ("", attempt)
