"""Read a turn's records: the message they make, and what each step of it says. Knows nothing of the product.

Written from the protocol (chunks and their effect on a message), not from the product's own fold: where the two
differ, one of them is wrong.
"""

import json
from typing import Any

JSONObject = dict[str, Any]
_TEXTS = ("text", "reasoning")


def message_parts(texts: list[str]) -> list[JSONObject]:
    """Return the parts that the chunks make, as they are to be stored."""
    parts: list[JSONObject] = []
    calls: dict[str, JSONObject] = {}
    for text in texts:
        _take(json.loads(text), parts, calls)
    return parts


def has_content(texts: list[str]) -> bool:
    """Whether the chunks say anything: a message without content is not stored."""
    return any(part["type"] != "step-start" for part in message_parts(texts))


def _take(chunk: JSONObject, parts: list[JSONObject], calls: dict[str, JSONObject]) -> None:
    kind, _, method = chunk["type"].partition("-")
    if chunk["type"] == "start-step":
        parts.append({"type": "step-start"})
    elif kind in _TEXTS:
        _take_text(kind, method, chunk, parts)
    elif chunk["type"] == "tool-input-start":
        name = chunk["toolName"]
        call = {"type": f"tool-{name}", "toolCallId": chunk["toolCallId"], "toolName": name, "state": "input-streaming"}
        call.update({"title": chunk["title"]} if "title" in chunk else {})
        calls[chunk["toolCallId"]] = call
        parts.append(call)
    elif kind == "tool" and chunk["toolCallId"] in calls:
        _take_call(chunk, calls[chunk["toolCallId"]])
    elif kind == "data" and not chunk.get("transient"):
        _take_data(chunk, parts)


def _take_data(chunk: JSONObject, parts: list[JSONObject]) -> None:
    """A seam is in the message, once for each place where a text was cut; it may take back the end of the text."""
    texts = [part for part in parts if part["type"] == "text"]
    if texts and chunk["type"] == "data-think-resumed":
        texts[-1]["text"] = texts[-1]["text"].removesuffix(chunk["data"].get("replaced", ""))
    same = [part for part in parts if part["type"] == chunk["type"] and "id" in chunk and part.get("id") == chunk["id"]]
    if same:
        same[-1]["data"] = chunk["data"]
    else:
        parts.append(dict(chunk))


def _take_text(kind: str, method: str, chunk: JSONObject, parts: list[JSONObject]) -> None:
    if method == "start":
        parts.append({"type": kind, "text": "", "state": "streaming"})
    part: JSONObject = next((part for part in reversed(parts) if part["type"] == kind), {"text": ""})
    if method == "delta":
        part["text"] += chunk["delta"]
    elif method == "end":
        part["state"] = "done"
    if "providerMetadata" in chunk:
        part["providerMetadata"] = {**part.get("providerMetadata", {}), **chunk["providerMetadata"]}


def _take_call(chunk: JSONObject, call: JSONObject) -> None:
    match chunk["type"]:
        case "tool-input-delta":
            call["rawInput"] = call.get("rawInput", "") + chunk["inputTextDelta"]
        case "tool-input-available":
            call.pop("rawInput", None)
            call.update(state="input-available", input=chunk["input"])
        case "tool-input-error":
            call.pop("rawInput", None)
            call.update(state="output-error", input=chunk["input"], errorText=chunk["errorText"])
        case "tool-output-available":
            call.update(state="output-available", output=chunk["output"])
        case "tool-output-error":
            call.update(state="output-error", errorText=chunk["errorText"])


def steps(texts: list[str]) -> list[JSONObject]:
    """Return what each step says: `text`, `reasonings`, `calls` (`id`, `name`, `raw`, `is_whole`, `input`)."""
    found: list[JSONObject] = []
    for text in texts:
        chunk = json.loads(text)
        kind = chunk["type"]
        if kind == "start-step" or (not found and kind != "start"):
            found.append({"text": "", "reasonings": [], "calls": []})
        elif kind == "text-delta":
            found[-1]["text"] += chunk["delta"]
        elif kind == "reasoning-start":
            found[-1]["reasonings"].append("")
        elif kind == "reasoning-delta":
            reasonings = found[-1]["reasonings"] or [""]
            found[-1]["reasonings"] = [*reasonings[:-1], reasonings[-1] + chunk["delta"]]
        elif kind.startswith("tool-input-"):
            _add_call(chunk, found[-1]["calls"])
    return found


def _add_call(chunk: JSONObject, calls: list[JSONObject]) -> None:
    if chunk["type"] == "tool-input-start":
        calls.append(
            {"id": chunk["toolCallId"], "name": chunk["toolName"], "raw": "", "is_whole": False, "input": None}
        )
        return
    call: JSONObject = next((call for call in calls if call["id"] == chunk["toolCallId"]), {"raw": ""})
    if chunk["type"] == "tool-input-delta":
        call["raw"] += chunk["inputTextDelta"]
    elif chunk["type"] == "tool-input-available":
        call.update(is_whole=True, input=chunk["input"])
