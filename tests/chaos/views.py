"""What clients and pages held at rest, compared with the stored path. Knows nothing of the product.

A view is what one of them held while one path was shown: `place`, `kind` (`transcript`: what a socket was sent,
`published`: what the published hook has, `page`: what the document shows), `room`, `leaf`, `messages`. Paths that were
left by an edit or a new answer are shown again at the end of a run, so that every answer is in some view of everybody.
A view without a leaf is of the path that was shown last.
"""

import json
from collections.abc import Iterable
from typing import Any

from tests.chaos.difference import Difference, canonical, differ

JSONObject = dict[str, Any]


def path_of(room: JSONObject, leaf: int | None) -> list[JSONObject]:
    """The shown path that ends here, root first, then what is not placed."""
    by_pk = {message["pk"]: message for message in room["messages"]}
    path, at = [], leaf
    while at is not None:
        path.append(by_pk[at])
        at = by_pk[at]["parent"]
    return path[::-1] + [message for message in room["messages"] if not message["placed"]]


def compare_view(world: JSONObject, view: JSONObject) -> list[Difference]:
    """The same messages in the same order, and each the same."""
    room, held = world["rooms"][view["room"]], view["messages"]
    path = path_of(room, view["leaf"] or room["leaf"])
    place = f"{view['place']} {view['kind']}"
    if not view.get("is_at_rest", True):
        return [Difference(turn=view["room"], place=place, what="does not come to rest")]
    expected = [message["id"] for message in path]
    found = [message["id"] for message in held]
    if expected != found:
        at = next((n for n, (a, b) in enumerate(zip(expected, found, strict=False)) if a != b), len(found))
        near = slice(max(0, at - 1), at + 3)
        what = f"{len(found)} messages instead of {len(expected)}, differing"
        sides = {"expected": str(expected[near]), "found": str(found[near])}
        return [Difference(turn=view["room"], place=place, what=what, at=at, **sides)]
    differences = []
    for mine, theirs in zip(path, held, strict=True):
        one, other = canonical(_stored(mine, view["kind"])), canonical(_held(theirs, view["kind"]))
        if one != other:
            turn = f"{view['room']} {mine['turn']}"
            differences.append(differ(turn, place, f"message {mine['id']}", one, other))
    return differences


def shown_by(view: JSONObject) -> Iterable[str]:
    """Ids of the messages in a view."""
    return (message["id"] for message in view["messages"])


def _stored(message: JSONObject, kind: str) -> Any:
    if kind == "page":
        shown = [_shown(part, message["role"]) for part in message["parts"]]
        return [message["role"], *(part for part in shown if part is not None)]
    return _held(message, kind)


def _held(message: JSONObject, kind: str) -> Any:
    if kind == "page":
        return [message["role"], *(_trimmed(part, message["role"]) for part in message["parts"])]
    if kind == "published":
        return [message["role"], *filter(None, map(_said, message["parts"]))]
    return [message["role"], message["parts"]]


def _said(part: JSONObject) -> list[str] | None:
    """What the hook must have of a part; it adds marks of its own, which say nothing."""
    if part["type"] in {"text", "reasoning"}:
        return [part["type"], part["text"]]
    if "toolCallId" in part:
        what = [part.get(key) for key in ("toolCallId", "state", "input", "output", "errorText")]
        return [part["type"], canonical(what)]
    return None


def _trimmed(part: JSONObject, role: str) -> JSONObject:
    is_rendered = part["kind"] == "reasoning" or (part["kind"] == "text" and role == "assistant")
    return {**part, "text": part["text"].strip()} if is_rendered else part


def _shown(part: JSONObject, role: str) -> JSONObject | None:
    """How a page shows a part. Rendered text has no blanks around it; nothing else is different."""
    if part["type"] == "text":
        return _trimmed({"kind": "text", "text": part["text"]}, role)
    if part["type"] == "reasoning":
        return _trimmed({"kind": "reasoning", "text": part["text"]}, role) if part["text"] else None
    if part["type"] == "data-think-resumed":
        return {"kind": "seam"}
    if "toolCallId" not in part:
        return None
    name = part["toolName"]
    given = part.get("input") if part.get("input") is not None else part.get("rawInput") or None
    sections = [("Arguments", given), ("Error", part.get("errorText") or None), ("Result", part.get("output"))]
    inside = [[title, _value(value)] for title, value in sections if value is not None]
    title = part.get("title") or name.replace("_", " ").capitalize()
    return {"kind": "tool", "name": f"Tool: {name}", "title": title, "state": part["state"], "sections": inside}


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
