"""A tab: the published client's list of messages, after the rules that it follows (`docs/reference/protocol.md`).

A transcript replaces the list, but for the answer that the tab is being sent; chunks are folded; a replay begins its
message afresh; a changed message is changed where it stands and never added. At the end of its own answer a tab puts
it behind the message that was the last one when the answer began: at the top, if there was none.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from chat.core.wire.accumulator import Accumulator
from sessions_app.core.messages.shapes import Message, Part
from thinkproject.kernel.jsonvalue import JSONObject

_RESPONSE = "cf_agent_use_chat_response"


@dataclass
class Line:
    """One connection of a tab: what it was sent, for the rules that hold for each connection."""

    sent: set[str] = field(default_factory=set)
    next_seq: dict[str, int] = field(default_factory=dict)
    ends: Counter[str] = field(default_factory=Counter)
    acknowledged: set[str] = field(default_factory=set)
    offered: set[str] = field(default_factory=set)  # and the acknowledgement has not been sent
    awaited: set[str] = field(default_factory=set)  # of those that were offered: the replay has not begun
    wrongs: list[str] = field(default_factory=list)

    def has_sent(self) -> None:
        """What was to be sent is with the server."""
        self.offered.clear()


class Tab:
    """One tab over any number of connections."""

    def __init__(self, label: str, wanted: Callable[[str], None]) -> None:
        self.label = label
        self.messages: list[Message] = []
        self.line: Line | None = None
        self._wanted = wanted  # sends a frame
        self._streams: dict[str, Accumulator] = {}
        self._own: set[str] = set()  # requests whose answer is this tab's own, also those that it resumed
        self._stopped: set[str] = set()
        self._place: tuple[str, str | None] | None = None  # the answer that is being sent, and what stood before it

    def opened(self) -> None:
        """A new line."""
        self.line = Line()

    def lost(self) -> None:
        """The line was cut: answers that were being sent end here, as far as they came."""
        self.line = None
        self._place = None
        self._streams.clear()
        self._own.clear()
        self._stopped.clear()

    # What a person does

    def ask(self, request_id: str, messages: list[Message], trigger: str) -> None:
        """Send the list."""
        assert self.line is not None
        self.messages = messages
        self._own.add(request_id)
        self.line.sent.add(request_id)
        body = json.dumps({"messages": messages, "trigger": trigger})
        init = {"method": "POST", "body": body}
        self._send({"type": "cf_agent_use_chat_request", "id": request_id, "init": init})

    def stop(self, request_id: str) -> None:
        """Stop a turn, and not listen to it any more."""
        if request_id in self._streams or request_id in self._own:
            self._stopped.add(request_id)
        self._send({"type": "cf_agent_chat_request_cancel", "id": request_id})

    def clear(self) -> None:
        """Empty the list first, then say so."""
        self._forget()
        self._send({"type": "cf_agent_chat_clear"})

    def answer(self, call_id: str, **values: Any) -> None:
        """Give a result; the list shows it at once."""
        frame = {"type": "cf_agent_tool_result", "toolCallId": call_id, "toolName": "", **values}
        part = self._part(call_id)
        if part is not None and values.get("state") == "output-error":
            part["state"], part["errorText"] = "output-error", values["errorText"]
        elif part is not None:
            part["state"], part["output"] = "output-available", values["output"]
        self._send(frame)

    def decide(self, call_id: str, *, approved: bool) -> None:
        """Allow or refuse a call; the list shows it at once."""
        part = self._part(call_id)
        if part is not None and part["state"] == "approval-requested":
            part["state"], part["approval"] = "approval-responded", {**part["approval"], "approved": approved}
        self._send(
            {"type": "cf_agent_tool_approval", "toolCallId": call_id, "approved": approved, "autoContinue": True}
        )

    def probe(self, number: int) -> None:
        """Ask whether there is something to resume."""
        self._send({"type": "cf_agent_stream_resume_request", "probeId": f"p{number}"})

    def open_calls(self, state: str) -> list[str]:
        """Calls that this tab shows in this state."""
        parts = [part for message in self.messages for part in message["parts"]]
        return [part["toolCallId"] for part in parts if part.get("state") == state and "toolCallId" in part]

    # What comes

    def hear(self, frame: JSONObject) -> None:
        """One frame."""
        assert self.line is not None
        match frame["type"]:
            case "cf_agent_chat_messages":
                self._transcript(frame["messages"])
            case "cf_agent_message_updated":
                self._updated(frame["message"])
            case "cf_agent_chat_clear":
                self._forget()
            case "cf_agent_stream_resuming" if frame["id"] not in self.line.acknowledged:
                self.line.acknowledged.add(frame["id"])
                self.line.offered.add(frame["id"])
                self.line.awaited.add(frame["id"])
                self._own.add(frame["id"])
                self._send({"type": "cf_agent_stream_resume_ack", "id": frame["id"]})
            case "cf_agent_use_chat_response":
                self._response(frame)

    def _transcript(self, messages: list[Message]) -> None:
        kept = [stream for request, stream in self._streams.items() if request in self._own and stream.message_id]
        self.messages = [message.copy() for message in messages]
        for stream in kept:
            places = [at for at, message in enumerate(messages) if message["id"] == stream.message_id]
            if places and any(message["role"] == "assistant" for message in messages[places[0] + 1 :]):
                self._place = None
                continue  # the list knows more
            self.messages = [message for message in self.messages if message["id"] != stream.message_id]
            self.messages.append(stream.message)
        for request, stream in self._streams.items():
            if request not in self._own:
                self._reapply(stream)

    def _reapply(self, stream: Accumulator) -> None:
        """What a tab observes stays where it is further than the list."""
        for at, message in enumerate(self.messages):
            if message["id"] == stream.message_id:
                mine = stream.message
                if len(mine["parts"]) >= len(message["parts"]) and _text(mine).startswith(_text(message)):
                    self.messages[at] = mine

    def _updated(self, message: Message) -> None:
        calls = {part["toolCallId"] for part in message["parts"] if "toolCallId" in part}
        for at, mine in enumerate(self.messages):
            shared = any(part.get("toolCallId") in calls for part in mine["parts"])
            if mine["id"] == message["id"] or shared:
                self.messages[at] = {**message, "id": mine["id"]}
                return

    def _response(self, frame: JSONObject) -> None:
        self._watch(frame)
        request_id = frame["id"]
        if "seq" in frame and request_id not in self._stopped:
            self._chunk(request_id, frame)
        elif frame["done"] or frame.get("error"):
            stream = self._streams.pop(request_id, None)
            sent = stream.message["id"] if request_id in self._own and stream is not None else None
            if self._place is not None and self._place[0] == sent:
                put_back(self.messages, *self._place)
                self._place = None
            self._own.discard(request_id)
            self._stopped.discard(request_id)

    def _chunk(self, request_id: str, frame: JSONObject) -> None:
        if frame.get("replay") and frame["seq"] == 0:
            self._streams.pop(request_id, None)
        stream = self._streams.setdefault(request_id, Accumulator())
        stream.apply(json.loads(frame["body"]))
        message = stream.message
        if request_id in self._own and (self._place is None or self._place[0] != message["id"]):
            ids = [mine["id"] for mine in self.messages]
            before = ids[: ids.index(message["id"])] if message["id"] in ids else ids
            self._place = (str(message["id"]), before[-1] if before else None)
        for at, mine in enumerate(self.messages):
            if mine["id"] == message["id"]:
                self.messages[at] = message
                return
        self.messages.append(message)

    def _watch(self, frame: JSONObject) -> None:
        """What must hold of what a connection is sent."""
        line, request_id = self.line, frame["id"]
        assert line is not None
        if "seq" in frame:
            expected = 0 if frame.get("replay") and frame["seq"] == 0 else line.next_seq.get(request_id, 0)
            if frame["seq"] != expected:
                line.wrongs.append(f"{request_id}: chunk {frame['seq']} instead of {expected}")
            is_asked = frame.get("replay") and request_id in line.acknowledged  # the offer came before the end
            if line.ends[request_id] and not is_asked:
                line.wrongs.append(f"{request_id}: chunk {frame['seq']} after the end")
            if request_id in line.offered - line.sent:  # to its own it never stopped listening
                line.wrongs.append(f"{request_id}: chunk {frame['seq']} before the acknowledgement")
            if frame.get("replay"):
                line.awaited.discard(request_id)
            elif request_id in line.awaited - line.sent:
                line.wrongs.append(f"{request_id}: chunk {frame['seq']} before the replay")
            line.next_seq[request_id] = frame["seq"] + 1
        elif frame["done"]:
            line.ends[request_id] += 1

    def _forget(self) -> None:
        self.messages = []
        self._place = None
        self._streams.clear()
        self._own.clear()

    def _part(self, call_id: str) -> Part | None:
        for at, message in enumerate(self.messages):
            for place, part in enumerate(message["parts"]):
                if part.get("toolCallId") == call_id:
                    changed = part.copy()
                    parts = [*message["parts"][:place], changed, *message["parts"][place + 1 :]]
                    self.messages[at] = {**message, "parts": parts}
                    return changed
        return None

    def _send(self, frame: JSONObject) -> None:
        self._wanted(json.dumps(frame))


def _text(message: Message) -> str:
    return "".join(part["text"] for part in message["parts"] if part["type"] == "text")


def put_back(messages: list[Message], answer_id: str, before: str | None) -> None:
    """Move an answer behind what stood before it; at the top, if that was nothing."""
    ids = [message["id"] for message in messages]
    if answer_id in ids:
        message = messages.pop(at := ids.index(answer_id))
        ids.remove(answer_id)
        messages.insert(0 if before is None else ids.index(before) + 1 if before in ids else at, message)
