"""How much was really compared: a run in which little was looked at proves little. Knows nothing of the product."""

from typing import Any

from tests.chaos.reading import has_content
from tests.chaos.views import shown_by

JSONObject = dict[str, Any]

LEAST = {
    "provider": 1.0,
    "cold log": 1.0,
    "hot log, from its beginning": 0.5,  # what a killed Redis lost may be missing, the beginning most of all
    "stored message": 1.0,
    "whole stream at a client": 0.7,  # a turn may end while no one is connected
    "transcript of every client": 1.0,
    "published hook": 1.0,
    "page": 1.0,
    "asked on a page, accepted": 1.0,
    "asked of a published hook, accepted": 0.7,  # what was on its way when the line was cut is the person's to repeat
}
"""The smallest share of the turns that said something (or of what was asked) that must have been compared."""

ENOUGH_TRIES = 3


def idle(acts: dict[str, list[bool]]) -> list[str]:
    """What was tried again and again and never came about (each try: whether it did): nothing of it was tested."""
    tried = {act: len(done) for act, done in acts.items() if not any(done)}
    return [f"{act}: tried {times} times, never done" for act, times in tried.items() if times >= ENOUGH_TRIES]


def count(world: JSONObject) -> dict[str, tuple[int, int]]:
    """By place: how many were compared, out of how many."""
    said = [turn for turn in world["turns"] if has_content(_records(turn))]
    shares = {
        "provider": _share(said, lambda turn: bool(turn["provider"])),
        "cold log": _share(said, lambda turn: bool(turn["cold"])),
        "hot log, from its beginning": _share(said, lambda turn: bool(turn["hot"]) and turn["hot"][0][0] == 0),
        "stored message": _share(said, lambda turn: _is_stored(world, turn)),
        "whole stream at a client": _share(said, lambda turn: _is_whole_somewhere(world, turn)),
    }
    for name, kind in (("transcript of every client", "transcript"), ("published hook", "published"), ("page", "page")):
        seen = _seen(world, kind)
        expected = [turn for turn in said if turn["room"] in seen and _is_stored(world, turn)]
        shares[name] = _share(expected, lambda turn, seen=seen: all(turn["assistant"] in s for s in seen[turn["room"]]))
    for name, by in (("asked on a page, accepted", "page"), ("asked of a published hook, accepted", "published")):
        asked = [request for request in world["requests"] if request.get("by") == by]
        shares[name] = _share(asked, lambda request: not request.get("is_lost"))
    return shares


def shortfalls(world: JSONObject) -> list[str]:
    """What was compared too seldom."""
    return [
        f"{name}: {done} of {of} compared, at least {LEAST[name]:.0%} must be"
        for name, (done, of) in count(world).items()
        if done < of * LEAST[name]
    ]


def _records(turn: JSONObject) -> list[str]:
    """The longest copy there is: what is missing in one place must not leave the count."""
    cold = [text for segment in turn["cold"] for text in segment["texts"]]
    return max(cold, [text for _, text in turn["hot"]], key=len)


def _share(items: list[JSONObject], is_done: Any) -> tuple[int, int]:
    return sum(1 for item in items if is_done(item)), len(items)


def _is_stored(world: JSONObject, turn: JSONObject) -> bool:
    messages = world["rooms"].get(turn["room"], {"messages": []})["messages"]
    return any(message["id"] == turn["assistant"] for message in messages)


def _is_whole_somewhere(world: JSONObject, turn: JSONObject) -> bool:
    size = sum(len(segment["texts"]) for segment in turn["cold"])
    for client in world["clients"]:
        for connection in client["connections"]:
            frames = [f for f in connection["frames"] if f["request"] == turn["request"]]
            got = {frame["seq"] for frame in frames if frame["kind"] == "chunk"}
            if client["room"] == turn["room"] and len(got) == size and any(f["kind"] == "done" for f in frames):
                return True
    return False


def _seen(world: JSONObject, kind: str) -> dict[str, list[set[str]]]:
    """By room: for each place of a kind, the ids of all messages that it showed."""
    found: dict[str, dict[str, set[str]]] = {}
    for view in world["views"]:
        if view["kind"] == kind:
            found.setdefault(view["room"], {}).setdefault(view["place"], set()).update(shown_by(view))
    return {room: list(places.values()) for room, places in found.items()}
