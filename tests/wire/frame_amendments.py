"""What the amendments of `docs/wire-amendments.md` change in a recording's frames: what this server must send instead.

One function a row; it gets the events of a recording and returns those that are expected here. The page says which
recordings a row changes.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.wire.recordings import Event
from thinkproject.kernel.jsonvalue import JSONObject

Amendment = Callable[[list[Event]], list[Event]]
PERHAPS = "perhaps"
"""A mark that is true or absent: when one turn has ended, the next begins while the list is read."""

ANY = "any value"
"""A value that differs from run to run: a time, a duration."""

_CHUNK = "cf_agent_use_chat_response"
_TRANSCRIPT = "cf_agent_chat_messages"
_UPDATED = "cf_agent_message_updated"
_OFFER = "cf_agent_stream_resuming"
_ANSWERS = ("cf_agent_tool_result", "cf_agent_tool_approval")


def channel_mark(events: list[Event]) -> list[Event]:
    """User messages carry no mark of the way they came."""
    return _with_messages(events, lambda message: _without(message, "metadata", {"channel": "web"}))


def crossed_transcript(events: list[Event]) -> list[Event]:
    """Who asks gets the list with the question, unless the request lists an answer that began after the last list."""
    path: list[JSONObject] = []
    began: dict[str, set[str]] = {}  # by client: answers that began after the list that it got last
    due: dict[int, Event] = {}  # by the index of what it follows: a list that was under way comes first
    found = []
    for at, event in enumerate(events):
        client, frame = event.client, event.frame
        if event.direction == "in" and frame["type"] == _TRANSCRIPT:
            path, began[client] = frame["messages"], set()
        elif event.direction == "out" and frame["type"] == "cf_agent_chat_clear":
            path = []
        elif _is_start(event) and not frame.get("replay"):
            began.setdefault(client, set()).add(str(frame["$body"].get("messageId")))
        found.append(event)
        if listed := _submitted(event):
            path = [*path, listed[-1]]
            if began.get(client, set()).isdisjoint(message["id"] for message in listed):
                own = replace(event, direction="in", frame={"type": _TRANSCRIPT, "messages": path})
                due[_last_list_under_way(events, at)] = own
        if at in due:
            found.append(due[at])
            began[due[at].client] = set()
    return _asked_again_below(found)


def _submitted(event: Event) -> list[JSONObject]:
    """The list of a request that says something new; empty for everything else."""
    body = event.frame["init"]["$body"] if event.direction == "out" and "init" in event.frame else {}
    listed: list[JSONObject] = body.get("messages", [])
    return listed if body.get("trigger") == "submit-message" and listed[-1]["role"] == "user" else []


def _asked_again_below(events: list[Event]) -> list[Event]:
    """Who asks for another answer gets the list that ends with its question before the answer begins."""
    again: dict[tuple[str, str], list[JSONObject]] = {}
    found = []
    for event in events:
        frame = event.frame
        if event.direction == "out" and "init" in frame and not _submitted(event):
            again[event.client, frame["id"]] = frame["init"]["$body"]["messages"]
        elif _is_start(event) and (event.client, frame["id"]) in again:
            path = again.pop((event.client, frame["id"]))
            found.append(replace(event, frame={"type": _TRANSCRIPT, "messages": path}))
        found.append(event)
    return found


def _last_list_under_way(events: list[Event], asked_at: int) -> int:
    """Index of the list that comes to a client next, where it was read before the client's request was known."""
    asked = events[asked_at]
    later = range(asked_at + 1, len(events))
    at = next((at for at in later if (events[at].client, events[at].direction) == (asked.client, "in")), asked_at)
    new = asked.frame["init"]["$body"]["messages"][-1]["id"]
    sent = [message["id"] for message in events[at].frame.get("messages", [{"id": new}])]
    return asked_at if new in sent else at


def queue_order(events: list[Event]) -> list[Event]:
    """Each question stands before its answer; those that have not begun stand last and are marked."""
    questions: dict[str, str] = {}  # request -> message
    answers: dict[str, str] = {}  # message -> answer
    found = []
    for event in events:
        frame = event.frame
        if event.direction == "out" and "init" in frame:
            body = frame["init"]["$body"]
            if body["trigger"] == "submit-message":
                questions[frame["id"]] = body["messages"][-1]["id"]
        elif _is_start(event) and frame["id"] in questions:
            question = questions[frame["id"]]
            answers[question] = frame["$body"]["messageId"]
        elif event.direction == "in" and frame["type"] == _TRANSCRIPT:
            waiting = set(questions.values()) - answers.keys()
            frame = {**frame, "messages": _in_order(frame["messages"], answers, waiting)}
        found.append(replace(event, frame=frame))
    return found


def _in_order(messages: list[JSONObject], answers: dict[str, str], waiting: set[str]) -> list[JSONObject]:
    by_id = {message["id"]: message for message in messages}
    answered = {by_id[question]["id"]: by_id.get(answer) for question, answer in answers.items() if question in by_id}
    moved = {answer["id"] for answer in answered.values() if answer is not None}
    placed: list[JSONObject] = []
    for message in messages:
        if message["id"] not in waiting and message["id"] not in moved:
            answer = answered.get(message["id"])
            placed += [message] if answer is None else [message, answer]
    queued = [message for message in messages if message["id"] in waiting]
    is_between = any(answer is not None for answer in answered.values())
    marks = [PERHAPS if is_between and at == 0 else True for at in range(len(queued))]
    return placed + [
        {**message, "metadata": {**message.get("metadata", {}), "queued": mark}}
        for message, mark in zip(queued, marks, strict=True)
    ]


def waiting_behind(events: list[Event]) -> list[Event]:
    """Where messages wait behind an answer, its end is followed by the list."""
    last: dict[str, JSONObject] = {}
    found = []
    for event in events:
        frame = event.frame
        found.append(event)
        if event.direction == "in" and frame["type"] == _TRANSCRIPT:
            last[event.client] = frame
        elif event.direction == "in" and frame.get("done") and not frame.get("error"):
            shown = last.get(event.client, {}).get("messages")
            if shown and (shown[-1].get("metadata") or {}).get("queued"):
                found.append(replace(event, frame=last[event.client]))
    return found


def continuation_id(events: list[Event]) -> list[Event]:
    """A continuation names the message under which it is stored, and is otherwise an answer like any other."""
    stored: dict[str, str] = {}
    last = ""
    for event in events:
        if event.direction == "in" and event.frame["type"] == _TRANSCRIPT and event.frame["messages"]:
            last = event.frame["messages"][-1]["id"]
        elif event.direction == "in" and event.frame.get("continuation") and event.frame["done"]:
            stored[event.frame["id"]] = last
    found = []
    for event in events:
        frame = event.frame
        if event.direction == "in" and frame.get("continuation"):
            frame = {key: value for key, value in frame.items() if key != "continuation"}
            if frame["done"]:
                frame["messageIds"] = []
            if _is_start(event):
                frame["$body"] = {"type": "start", "messageId": stored[frame["id"]]}
        found.append(replace(event, frame=frame))
    return found


def continuation_output(events: list[Event]) -> list[Event]:
    """The result of an earlier message's call is sent by that message alone."""
    gone = {
        (event.frame["id"], event.frame["seq"])
        for event in events
        if event.frame.get("continuation") and event.frame.get("$body", {}).get("type") == "tool-output-available"
    }
    found = []
    for event in events:
        frame = event.frame
        if "seq" in frame:
            if (frame["id"], frame["seq"]) in gone:
                continue
            before = sum(request == frame["id"] and seq < frame["seq"] for request, seq in gone)
            frame = {**frame, "seq": frame["seq"] - before}
        found.append(replace(event, frame=frame))
    return found


def path_before_replay(events: list[Event]) -> list[Event]:
    """The list comes before the replay, for the one that did not receive the beginning of the answer."""
    shown: dict[str, JSONObject] = {}
    sent: set[tuple[str, str]] = set()
    live = {(event.client, event.frame["id"]) for event in events if event.frame.get("replayComplete")}
    found = []
    for event in events:
        frame = event.frame
        for message in _told_messages(event):
            shown[message["id"]] = message
        if event.direction == "in" and "seq" in frame:
            if (event.client, frame["id"]) in live - sent and frame.get("replay"):
                path = {"type": _TRANSCRIPT, "messages": list(shown.values()), "connect": True}
                found.append(replace(event, frame=path))
            sent.add((event.client, frame["id"]))
        found.append(event)
    return found


def stopped_answer(events: list[Event]) -> list[Event]:
    """Who stopped a turn is sent its answer as stored, after the end."""
    stopped: set[tuple[str, str]] = set()
    last: list[JSONObject] = []
    found = []
    for event in events:
        frame = event.frame
        found.append(event)
        if event.direction == "out" and frame["type"] == "cf_agent_chat_request_cancel":
            stopped.add((event.client, frame["id"]))
        elif event.direction == "in" and frame["type"] == _TRANSCRIPT:
            last = frame["messages"]
        elif event.direction == "in" and frame.get("done") and (event.client, frame.get("id", "")) in stopped:
            found.append(replace(event, frame={"type": _UPDATED, "message": last[-1]}))
    return found


def failed_answer(events: list[Event]) -> list[Event]:
    """An answer that failed in its stream is sent as stored, after the end."""
    failed: set[tuple[str, str]] = set()
    last: list[JSONObject] = []
    found = []
    for event in events:
        frame = event.frame
        found.append(event)
        if event.direction == "in" and frame.get("error") and not frame["done"]:
            failed.add((event.client, frame["id"]))
        elif event.direction == "in" and frame["type"] == _TRANSCRIPT:
            last = frame["messages"]
        elif event.direction == "in" and frame.get("done") and (event.client, frame["id"]) in failed:
            found.append(replace(event, frame={"type": _UPDATED, "message": last[-1]}))
    return found


def cleared_tab(events: list[Event]) -> list[Event]:
    """Who clears is sent the list that is left."""
    found = []
    for event in events:
        found.append(event)
        if event.direction == "out" and event.frame["type"] == "cf_agent_chat_clear":
            found.append(replace(event, direction="in", frame={"type": _TRANSCRIPT, "messages": []}))
    return found


def regenerate_sibling(events: list[Event]) -> list[Event]:
    """While it is asked again the list ends before the old answer."""
    asked_again: list[JSONObject] = []
    found = []
    for event in events:
        frame = event.frame
        if event.direction == "out" and "init" in frame:
            body = frame["init"]["$body"]
            asked_again = body["messages"] if body["trigger"] == "regenerate-message" else []
        elif _is_start(event):
            asked_again = []
        elif event.direction == "in" and frame["type"] == _TRANSCRIPT and asked_again:
            frame = {**frame, "messages": frame["messages"][: len(asked_again)]}
        found.append(replace(event, frame=frame))
    return found


def continuation_shown(events: list[Event]) -> list[Event]:
    """Who did not ask for a continuation gets the list before it begins."""
    shown: dict[str, JSONObject] = {}
    answerer = ""
    found = []
    for event in events:
        for message in _told_messages(event):
            shown[message["id"]] = message
        if event.direction == "out" and event.frame["type"] in _ANSWERS:
            answerer = event.client
        if _is_start(event) and event.frame.get("continuation") and event.client != answerer:
            found.append(replace(event, frame={"type": _TRANSCRIPT, "messages": list(shown.values())}))
        found.append(event)
    return found


def answerer_is_live(events: list[Event]) -> list[Event]:
    """Who answered gets the continuation without an offer. What it says is in the list that follows."""
    found = []
    for at, event in enumerate(events):
        if event.direction != "in" or event.frame["type"] != _OFFER:
            found.append(event)
            continue
        stored = next(later.frame["messages"] for later in events[at:] if later.frame["type"] == _TRANSCRIPT)[-1]
        head = {"type": _CHUNK, "id": event.frame["id"], "done": False, "continuation": True}
        for seq, chunk in enumerate(_said(stored)):
            found.append(replace(event, frame={**head, "$body": chunk, "seq": seq}))
    return found


def _said(message: JSONObject) -> list[JSONObject]:
    """The chunks of an answer of one text, word by word."""
    words = re.findall(r"\S+|\s+\S+", message["parts"][-1]["text"])
    deltas = [{"type": "text-delta", "id": "txt-0", "delta": word} for word in words]
    return [
        *({"type": "start"}, {"type": "start-step"}, {"type": "text-start", "id": "txt-0"}),
        *deltas,
        *({"type": "text-end", "id": "txt-0"}, {"type": "finish-step"}, {"type": "finish", "finishReason": "stop"}),
    ]


def failure_seen(events: list[Event]) -> list[Event]:
    """Both connections are the same person's, who has seen the failure; asked for, it is sent all the same."""

    def change(event: Event) -> Event:
        if event.direction == "in" and event.frame["type"] == _OFFER:
            probe_id = event.frame["probeId"]
            none = {"type": "cf_agent_stream_resume_none", "reason": "idle", "probeId": probe_id}
            return replace(event, frame=none)
        return event

    return [change(event) for event in events]


def step_before_model(events: list[Event]) -> list[Event]:
    """A step begins before the model is asked, so one that refuses has begun it; its end is sent with the list."""
    failed = {event.frame["id"] for event in events if event.direction == "in" and event.frame.get("error")}
    last: list[JSONObject] = []
    found = []
    for event in events:
        frame = event.frame
        if event.direction == "out" and "init" in frame:
            last = [*last, frame["init"]["$body"]["messages"][-1]]
        if event.direction == "in" and frame.get("outcome") == "error" and frame["id"] in failed:
            found.append(replace(event, frame={"type": _TRANSCRIPT, "messages": last}))
        found.append(event)
        if _is_start(event) and frame["id"] in failed:
            found.append(replace(event, frame={**frame, "$body": {"type": "start-step"}, "seq": 1}))
    return _with_begun_steps_replayed(found)


def _with_begun_steps_replayed(events: list[Event]) -> list[Event]:
    """What follows a replay at once had begun before it."""
    found: list[Event] = []
    replayed: dict[tuple[str, str], int] = {}  # by client and request: where its replay is complete
    for event in events:
        frame = event.frame
        key = (event.client, str(frame.get("id", "")))
        if event.direction == "in" and frame.get("replayComplete"):
            replayed[key] = len(found)
        elif event.direction == "in" and "$body" in frame and key in replayed:
            at = replayed.pop(key)
            if frame["$body"]["type"] == "start-step":
                found.insert(at, replace(event, frame={**frame, "replay": True}))
                continue
        found.append(event)
    return found


def activity_reported(events: list[Event]) -> list[Event]:
    """Each step reports the model that is asked, and the calls that run once it has answered."""
    shifts: dict[tuple[str, str], int] = {}
    calls: dict[tuple[str, str], list[JSONObject]] = {}
    found: list[Event] = []

    def report(event: Event, kind: str, facts: JSONObject, *, at: int) -> None:
        data = {"kind": kind, **facts, "since": ANY}
        body = {"type": "data-think-status", "data": data, "transient": True}
        found.append(replace(event, frame={**event.frame, "$body": body, "seq": event.frame["seq"] + at}))

    for event in events:
        frame = event.frame
        if event.direction != "in" or "seq" not in frame:
            found.append(event)
            continue
        key, body = (event.client, frame["id"]), frame["$body"]
        if frame["seq"] == 0:
            shifts[key], calls[key] = 0, []
        if calls[key] and body["type"] in _AFTER_CALLS:
            report(event, "tool", {"calls": calls[key]}, at=shifts[key])
            shifts[key], calls[key] = shifts[key] + 1, []
        found.append(replace(event, frame={**frame, "seq": frame["seq"] + shifts[key]}))
        if body["type"] == "start-step":
            shifts[key] += 1
            report(event, "model", {"name": ANY, "step": ANY}, at=shifts[key])
        elif body["type"] == "tool-input-available":
            calls[key].append({"callId": body["toolCallId"], "name": body["toolName"], "title": ""})
    return found


_AFTER_CALLS = ("tool-output-available", "tool-output-error", "tool-approval-request", "finish-step")


def reasoning_timed(events: list[Event]) -> list[Event]:
    """The end of reasoning carries the time that it took, and so does the stored part."""
    took = {"providerMetadata": {"think": {"durationMs": ANY}}}

    def change(message: JSONObject) -> JSONObject:
        parts = [{**part, **took} if part["type"] == "reasoning" else part for part in message["parts"]]
        return {**message, "parts": parts}

    found = []
    for event in _with_messages(events, change):
        frame = event.frame
        if event.direction == "in" and frame.get("$body", {}).get("type") == "reasoning-end":
            frame = {**frame, "$body": {**frame["$body"], **took}}
        found.append(replace(event, frame=frame))
    return found


def question_described(events: list[Event]) -> list[Event]:
    """A question to a person carries the tool's own words, and so does the stored part."""
    words = {"title": "", "sentence": "", "mayEdit": False}

    def described(part: JSONObject) -> JSONObject:
        approval = part.get("approval")
        return {**part, "approval": {**approval, "descriptor": words}} if approval else part

    found = []
    for event in _with_messages(events, lambda m: {**m, "parts": [described(part) for part in m["parts"]]}):
        frame = event.frame
        if event.direction == "in" and frame.get("$body", {}).get("type") == "tool-approval-request":
            frame = {**frame, "$body": {**frame["$body"], "approvalDescriptor": words}}
        found.append(replace(event, frame=frame))
    return found


def _told_messages(event: Event) -> Iterator[JSONObject]:
    frame = event.frame
    if event.direction == "out" and "init" in frame:
        yield from frame["init"]["$body"]["messages"]
    elif event.direction == "in" and frame["type"] == _TRANSCRIPT:
        yield from frame["messages"]
    elif event.direction == "in" and frame["type"] == _UPDATED:
        yield frame["message"]


def _is_start(event: Event) -> bool:
    return event.direction == "in" and event.frame.get("$body", {}).get("type") == "start"


def _without(value: JSONObject, key: str, is_value: object) -> JSONObject:
    return {name: item for name, item in value.items() if name != key or item != is_value}


def _with_messages(events: list[Event], change: Callable[[JSONObject], JSONObject]) -> list[Event]:
    """Change each message that came."""
    found = []
    for event in events:
        frame = event.frame
        if event.direction == "in" and frame["type"] == _TRANSCRIPT:
            frame = {**frame, "messages": [change(message) for message in frame["messages"]]}
        elif event.direction == "in" and frame["type"] == _UPDATED:
            frame = {**frame, "message": change(frame["message"])}
        found.append(replace(event, frame=frame))
    return found


AMENDMENTS: dict[str, Amendment] = {
    "crossed-transcript": crossed_transcript,
    "channel-mark": channel_mark,
    "path-before-replay": path_before_replay,
    "queue-order": queue_order,
    "waiting-behind": waiting_behind,
    "regenerate-sibling": regenerate_sibling,
    "stopped-answer": stopped_answer,
    "failed-answer": failed_answer,
    "cleared-tab": cleared_tab,
    "failure-seen": failure_seen,
    "continuation-output": continuation_output,
    "step-before-model": step_before_model,
    "answerer-is-live": answerer_is_live,
    "continuation-shown": continuation_shown,
    "continuation-id": continuation_id,
    "question-described": question_described,
    "reasoning-timed": reasoning_timed,
    "activity-reported": activity_reported,
}
"""By name, in the order in which they are applied."""
