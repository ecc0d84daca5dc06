"""What must hold after a chaos run of durable work, whatever was killed. Knows nothing of the product.

The input is a world (JSON): `turns`, `fibers`, `messages`, `runs` of schedules, the `occurrences` that began (one
each `every` seconds), the `ledger` of effects, the `asked`.
Effects are named by the one who asked; lines of one key are one effect, as a system with idempotency keys has it.
"""

from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

JSONObject = dict[str, Any]
COMMIT_SECONDS = 0.5  # a run has the time at which its last transaction began, and goes on for others until its end
READY_SECONDS = 0.5  # a worker is seen to be ready this long after it was, at most
TERMINAL = ("completed", "cancelled", "failed", "interrupted")


def broken(world: JSONObject) -> list[str]:
    """Every rule that does not hold, with what breaks it."""
    rules = (
        ended,
        stored_once,
        said_whole,
        effects_once,
        nothing_leased,
        occurrences_once,
        none_left_out,
        schedules_alive,
    )
    return [line for rule in rules for line in rule(world)]


def ended(world: JSONObject) -> list[str]:
    """Every accepted turn is terminal, and every request was accepted once."""
    lines = [f"turn {turn['id']} is {turn['status']}" for turn in world["turns"] if turn["status"] not in TERMINAL]
    lines += [f"turn {turn['id']} is over and has no end" for turn in world["turns"] if turn["finished_at"] is None]
    lines += [f"turn {turn['id']} failed: {turn['error']}" for turn in world["turns"] if turn["error"]]
    accepted = Counter(turn["request"] for turn in world["turns"])
    return lines + [
        f"request {ask['request']} has {accepted[ask['request']]} turns"
        for ask in world["asked"]
        if accepted[ask["request"]] != 1
    ]


def stored_once(world: JSONObject) -> list[str]:
    """Each message is stored once, under one id, with its text once."""
    ids = Counter((message["room"], message["id"]) for message in world["messages"])
    lines = [f"message {key} is stored {count} times" for key, count in ids.items() if count > 1]
    asked = Counter(message["text"] for message in world["messages"] if message["role"] == "user")
    lines += [
        f"{ask['text']!r} is stored {asked[ask['text']]} times" for ask in world["asked"] if asked[ask["text"]] != 1
    ]
    return lines


def said_whole(world: JSONObject) -> list[str]:
    """What was to be said last is the end of an answer, once: nothing lost, nothing doubled."""
    said = "\n".join(message["text"] for message in world["messages"] if message["role"] == "assistant")
    return [
        f"{ask['says']!r} is said {said.count(ask['says'])} times"
        for ask in world["asked"]
        if said.count(ask["says"]) != 1
    ]


def effects_once(world: JSONObject) -> list[str]:
    """An effect under a key has one key; one that is never repeated has at most one line."""
    keys: dict[str, list[str]] = defaultdict(list)
    for line in world["ledger"]:
        keys[line["what"]].append(line["key"])
    lines = []
    for ask in world["asked"]:
        for effect in ask["effects"]:
            found = keys.get(effect["what"], [])
            if len(set(found)) > 1:
                lines.append(f"effect {effect['what']} has {len(set(found))} keys")
            if effect["is_repeatable"] and not found:
                lines.append(f"effect {effect['what']} never happened")
            if not effect["is_repeatable"] and len(found) > 1:
                lines.append(f"effect {effect['what']} happened {len(found)} times")
    known = {effect["what"] for ask in world["asked"] for effect in ask["effects"]} | {"tick"}
    return lines + [f"effect {what} was never asked for" for what in sorted(set(keys) - known)]


def nothing_leased(world: JSONObject) -> list[str]:
    """No row is held by a worker, running, or still to be run now."""
    return [
        f"fiber {fiber['id']} ({fiber['name']}) is {fiber['status']}, leased: {fiber['is_leased']}"
        for fiber in world["fibers"]
        if fiber["is_leased"] or fiber["status"] == "running"
    ]


def occurrences_once(world: JSONObject) -> list[str]:
    """No instant of a schedule was fired twice; none that ran to its end left no trace."""
    lines, dues = [], Counter((run["schedule"], run["due"]) for run in world["runs"] if not run["is_test"])
    lines += [f"schedule {key} was fired {count} times" for key, count in dues.items() if count > 1]
    by_due: dict[tuple[str, str], set[str]] = defaultdict(set)
    for line in world["ledger"]:
        if line["what"] == "tick":
            by_due[line["schedule"], line["due"]].add(line["key"])
    lines += [f"occurrence {due} has {len(keys)} keys" for due, keys in by_due.items() if len(keys) > 1]
    ticked = {line["key"] for line in world["ledger"] if line["what"] == "tick"}
    lines += [
        f"run {run['key']} completed and never ticked"
        for run in world["runs"]
        if run["status"] == "completed" and run["key"] not in ticked
    ]
    return lines + [
        f"run {run['key']} ended as {run['status']}"
        for run in world["runs"]
        if run["status"] in {"failed", "interrupted"}
    ]


def none_left_out(world: JSONObject) -> list[str]:
    """No occurrence was skipped: after a run has begun and ended, the next instant of the schedule is fired.

    Instants that were due before a run could begin are one run, and those that come while a run goes on are left out.
    """
    lines = []
    for one, following in pairwise(world["occurrences"]):
        free = max(one["began"], one["ended"] or one["began"])
        if one["schedule"] == following["schedule"] and following["due"] > free + world["every"] + COMMIT_SECONDS:
            lines.append(f"schedule {one['schedule']} skipped {following['due'] - free:.3f} s after {one['due']}")
    return lines


def schedules_alive(world: JSONObject) -> list[str]:
    """No schedule lost its timer: each went on after the last kill."""
    last: dict[str, float] = {}
    for line in world["ledger"]:
        if line["what"] == "tick":
            last[line["schedule"]] = max(line["at"], last.get(line["schedule"], 0.0))
    return [
        f"schedule {name} has not ticked since the last kill"
        for name in world["schedules"]
        if last.get(name, 0.0) < world["calm_at"]
    ]


def takeovers(world: JSONObject) -> list[float]:
    """Seconds from the kill of a worker to the next attempt, of each fiber that it ran, while another worker lived.

    Where none lived it is the start of a worker that is measured, and how often that was cut off.
    """
    return [
        seen["next_at"] - seen["killed_at"]
        for seen in world["takeovers"]
        if any(_lived(world, up, seen["killed_at"], seen["next_at"]) for up in world["ready"])
    ]


def _lived(world: JSONObject, up: JSONObject, begin: float, end: float) -> bool:
    """Whether a worker that came up then was neither killed nor stopped until the end."""
    faults = [kill["at"] for kill in world["kills"] if kill["name"] == up["name"]]
    return bool(up["at"] < begin) and not any(up["at"] - READY_SECONDS <= at <= end for at in faults)


def percentile(values: list[float], share: float) -> float:
    """The value below which this share lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
