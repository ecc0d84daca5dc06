"""The oracle: compares what every place says about every turn, byte for byte. Imports nothing of the product.

`python -m tests.chaos.oracle BRIEF.json [--keep WORLD.json]` gathers and compares; `--world WORLD.json` compares what
was gathered before. It prints each difference with turn, place and first differing byte, and exits with 1 if there is
one.

Places: the provider's own log, the hot log (Redis), the cold log and the stored message (database), the frames that
each client got on each connection, and what each of them and each page held at rest (`views.py`). How much was compared
is counted (`tally.py`); too little is a failure too.
"""

import argparse
import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.chaos.difference import Difference, canonical, differ, first_byte
from tests.chaos.evidence import collect, marker_of, text_of
from tests.chaos.reading import has_content, message_parts, steps
from tests.chaos.tally import count, shortfalls
from tests.chaos.views import compare_view

JSONObject = dict[str, Any]
TERMINAL = ("completed", "cancelled", "failed", "interrupted")
AFTER_KILL_SECONDS = 15.0
BEFORE_SECONDS, AFTER_SECONDS = 2.0, 8.0  # a connection that was there this long around a turn must have all of it


def compare(world: JSONObject) -> list[Difference]:
    """Return every difference."""
    found = []
    for turn in world["turns"]:
        found += Comparison(world, turn).run()
    found += _compare_requests(world)
    for client in world["clients"]:
        found += _compare_ends(client)
    for view in world["views"]:
        found += compare_view(world, view)
    return found


class Comparison:
    """All places of one turn."""

    def __init__(self, world: JSONObject, turn: JSONObject) -> None:
        self.world = world
        self.turn = turn
        self.found: list[Difference] = []
        self.cold: list[str] = []
        self.held = self._held()
        self.records: list[str] = []  # what most places agree on

    def run(self) -> list[Difference]:
        """Compare everything."""
        if self.turn["status"] not in TERMINAL:
            self.say("status", f"the turn is {self.turn['status']}")
        self.cold = [text for segment in self.turn["cold"] for text in segment["texts"]]
        self.records = self._agreed()
        self.check_cold()
        self.check_hot()
        self.check_provider()
        self.check_stored()
        self.check_clients()
        return self.found

    def say(self, place: str, what: str, *, at: int = 0, expected: str = "", found: str = "") -> None:
        """Note a difference; long texts are cut around their first differing byte."""
        turn = f"{self.turn['room']}/{self.turn['request']} {self.turn['turn']}"
        difference = Difference(turn=turn, place=place, what=what, at=at)
        if expected or found:
            difference = replace(differ(turn, place, what, expected, found), at=at)
        self.found.append(difference)

    @property
    def is_whole(self) -> bool:
        """Whether the answer came to its own end."""
        return bool(self.turn["status"] == "completed")

    def _held(self) -> list[tuple[str, list[JSONObject]]]:
        """Connections of each client, each with the frames of this turn alone."""
        found = []
        for client in self.world["clients"]:
            if client["room"] == self.turn["room"]:
                request = self.turn["request"]
                lines = [
                    {**line, "frames": [f for f in line["frames"] if f["request"] == request]}
                    for line in client["connections"]
                ]
                found.append((f"client {client['client']}", lines))
        return found

    def _agreed(self) -> list[str]:
        """What both logs hold, else what most places do: the one that is wrong is then the one that is named."""
        sequences = [self.cold, [text for _, text in self.turn["hot"]]]
        if sequences[0] == sequences[1]:
            return self.cold
        for _, lines in self.held:
            sequences += [
                _last_telling(line["frames"])
                for line in lines
                if line["frames"] and line["frames"][-1]["kind"] == "done"
            ]
        votes = Counter(tuple(sequence) for sequence in sequences if sequence)
        return list(votes.most_common(1)[0][0]) if votes else []

    def check_sequence(self, place: str, records: list[str]) -> None:
        """Compare a whole list of records; one line for what is lost, doubled, moved or changed."""
        if records == self.records:
            return
        pairs = zip(self.records, records, strict=False)
        at = next((n for n, (mine, theirs) in enumerate(pairs) if mine != theirs), min(len(records), len(self.records)))
        rest, theirs = self.records[at:], records[at:]
        if theirs == rest[1:]:
            what = "record lost"
        elif theirs[1:] == rest or theirs == [*self.records[at - 1 : at], *rest]:
            what = "record doubled"
        elif theirs[:2] == rest[1::-1] and theirs[2:] == rest[2:]:
            what = "records reordered"
        else:
            what = f"records differ ({len(records)} instead of {len(self.records)})"
        self.say(place, what, at=at, expected=rest[0] if rest else "", found=theirs[0] if theirs else "")

    def check_cold(self) -> None:
        """Segments follow each other without holes and hold every record."""
        following = 0
        for segment in self.turn["cold"]:
            if segment["first"] != following or segment["last"] - segment["first"] + 1 != len(segment["texts"]):
                self.say("cold log", f"segment {segment['first']}-{segment['last']} does not follow", at=following)
            following = segment["last"] + 1
        self.check_sequence("cold log", self.cold)

    def check_hot(self) -> None:
        """Records stand at their offsets. After a killed Redis what the database has may be missing, nothing else."""
        hot = self.turn["hot"]
        begin, end = self.turn["started_at"] or 0, (self.turn["finished_at"] or 0) + AFTER_KILL_SECONDS
        was_killed = any(
            k["what"] == "redis" and begin - AFTER_KILL_SECONDS <= k["at"] <= end for k in self.world["kills"]
        )
        first = hot[0][0] if hot else 0
        if [offset for offset, _ in hot] != list(range(first, first + len(hot))):
            self.say("hot log", "offsets do not follow each other", at=first)
        if was_killed:
            part = self.records[first : first + len(hot)]
            if [text for _, text in hot] != part:
                self.check_sequence("hot log", [*self.records[:first], *(text for _, text in hot)])
        else:
            self.check_sequence("hot log", [text for _, text in hot])

    def check_provider(self) -> None:
        """Each step says what the provider sent for it: all of it, or of a stopped turn the beginning."""
        said = steps(self.records)
        excused = self.turn["seals"]
        rounds = sorted({request["round"] for request in self.turn["provider"]})
        if self.is_whole and rounds != list(range(len(said))):
            self.say("provider", f"asked for rounds {rounds}, but the log has {len(said)} steps")
        for number, step in enumerate(said):
            requests = [request for request in self.turn["provider"] if request["round"] == number]
            if requests:
                self.check_text(number, step, requests)
                self.check_reasoning(number, step, requests)
                excused -= self.check_calls(number, step, requests[-1], excused)
            elif any(step.values()):
                self.say("provider", "says nothing of a step", at=number)

    def check_text(self, number: int, step: JSONObject, requests: list[JSONObject]) -> None:
        """Piece the text together over continuations."""
        sent = ""
        for request in requests:
            if request["mismatch"] or request["continues"] > len(sent):
                self.say("provider", "was asked to go on from what it never said", at=number)
            sent = sent[: request["continues"]] + request["text"]
        is_same = step["text"] == sent if self.is_whole else sent.startswith(step["text"])
        if not is_same:
            self.say("log against provider", f"text of step {number}", expected=sent, found=step["text"])

    def check_reasoning(self, number: int, step: JSONObject, requests: list[JSONObject]) -> None:
        """What was thought is what each request thought, one after the other; only what was sealed is cut."""
        sent = [request["reasoning"] for request in requests if request["reasoning"]]
        rest, cuts, is_complete = "".join(step["reasonings"]), 0, not sent
        for thought in sent:
            length = first_byte(thought, rest) if rest else 0
            cuts += 0 < length < len(thought)
            is_complete = is_complete or length == len(thought)
            rest = rest[length:]
        if rest or cuts > self.turn["seals"] + (not self.is_whole) or (self.is_whole and not is_complete):
            found = "".join(step["reasonings"])
            self.say("log against provider", f"reasoning of step {number}", expected="".join(sent), found=found)

    def check_calls(self, number: int, step: JSONObject, request: JSONObject, excused: int) -> int:
        """Calls come in order and whole; only in a sealed step may they be cut, and the last ones be missing."""
        is_cut = False
        for place, call in enumerate(step["calls"]):
            sent = request["calls"][place] if place < len(request["calls"]) else {"id": "", "name": "", "raw": ""}
            is_last = place == len(step["calls"]) - 1
            is_same = (
                call["raw"] == sent["raw"] and call["is_whole"] and call["input"] == json.loads(sent["raw"] or "{}")
            )
            # A call is whole when the answer is: one that was written out before the next began may be cut as well.
            is_written = call["raw"] == sent["raw"] or (is_last and sent["raw"].startswith(call["raw"]))
            is_begin = not call["is_whole"] and is_written
            if (call["id"], call["name"]) != (sent["id"], sent["name"]) or not (is_same or is_begin):
                self.say(
                    "log against provider", f"call {place} of step {number}", expected=sent["raw"], found=call["raw"]
                )
            is_cut = is_cut or not is_same
        is_short = is_cut or len(step["calls"]) < len(request["calls"])
        if is_short and self.is_whole and excused < 1:
            missing = f"{len(step['calls'])} of {len(request['calls'])} calls"
            self.say("log against provider", f"{missing} in step {number}, and nothing was sealed", at=number)
        return int(is_short)

    def check_stored(self) -> None:
        """The stored message is what the records make."""
        expected = message_parts(self.records)
        messages = self.world["rooms"].get(self.turn["room"], {"messages": []})["messages"]
        stored = [message["parts"] for message in messages if message["id"] == self.turn["assistant"]]
        wanted = int(has_content(self.records))
        if len(stored) != wanted:
            self.say("stored message", f"is there {len(stored)} times instead of {wanted}")
        for parts in stored:
            if canonical(parts) != canonical(expected):
                self.say("stored message", "parts", expected=canonical(expected), found=canonical(parts))

    def check_clients(self) -> None:
        """Each connection got each record once and in order, from the beginning; after the end nothing.

        One that was there from before the turn until after it got the whole turn and its end.
        """
        for name, lines in self.held:
            for line in lines:
                self._check_line(name, line["frames"])
                if self._was_there_throughout(line):
                    self._check_whole(name, line["frames"])

    def _was_there_throughout(self, line: JSONObject) -> bool:
        begin, end = self.turn["started_at"], self.turn["finished_at"]
        if begin is None or end is None or line["opened"] is None or line["opened"] > begin - BEFORE_SECONDS:
            return False
        return line["closed"] is None or bool(line["closed"] > end + AFTER_SECONDS)

    def _check_whole(self, place: str, line: list[JSONObject]) -> None:
        got = {frame["seq"] for frame in line if frame["kind"] == "chunk"}
        missing = sorted(set(range(len(self.records))) - got)
        if missing:
            expected = self.records[missing[0]]
            self.say(place, "was there and did not get all records", at=missing[0], expected=expected)
        elif not any(frame["kind"] == "done" for frame in line):
            self.say(place, "was there and did not get the end")

    def _check_line(self, place: str, line: list[JSONObject]) -> None:
        following, is_over = 0, False
        for frame in line:
            if frame["kind"] == "done":
                if following and following != len(self.records) and not frame["replay"]:
                    last = self.records[following] if following < len(self.records) else ""
                    self.say(place, "records lost at the end", at=following, expected=last)
                is_over = True
            elif frame["kind"] == "chunk":
                if is_over:
                    self.say(place, "a record after the end", at=frame["seq"], found=frame["body"])
                if frame["replay"] and frame["seq"] == 0:
                    following = 0
                if frame["seq"] != following:
                    what = "records lost" if frame["seq"] > following else "record doubled or reordered"
                    self.say(place, what, at=following, found=frame["body"])
                following = frame["seq"] + 1
                self._check_body(place, frame)

    def _check_body(self, place: str, frame: JSONObject) -> None:
        expected = self.records[frame["seq"]] if frame["seq"] < len(self.records) else ""
        if frame["body"] != expected:
            self.say(place, "record differs", at=frame["seq"], expected=expected, found=frame["body"])


def _last_telling(frames: list[JSONObject]) -> list[str]:
    """What a connection was sent in the end: a replay begins afresh."""
    told: list[str] = []
    for frame in frames:
        if frame["kind"] == "chunk":
            told = [*([] if frame["replay"] and frame["seq"] == 0 else told), frame["body"]]
    return told


def _compare_requests(world: JSONObject) -> list[Difference]:
    """Everything asked for was accepted once and holds the words of the person; every turn came to its end."""
    found, stopped = [], set()
    turns = {(turn["room"], turn["request"]): turn for turn in world["turns"]}
    for request in world["requests"]:
        text, name = request["text"], f"{request['room']}/{request['request']}"
        if request["request"] is None:  # a browser's: it is known by its words
            said = [turn for turn in world["turns"] if text in _words_of(world, turn)]
            name = f"{request['room']}/{marker_of(text)}"
        else:
            said = [turns[key] for key in [(request["room"], request["request"])] if key in turns]
        if len(said) > 1 or (not said and not request.get("is_lost")):
            found.append(
                Difference(turn=name, place="database", what=f"was accepted {len(said)} times instead of once")
            )
            continue
        for turn in said:
            words = _words_of(world, turn)
            if request["stopped"]:
                stopped.add(turn["turn"])
            if text is not None and words != [text]:
                found.append(differ(name, "user message", "text", text, "".join(words)))
    for turn in world["turns"]:
        if turn["status"] != "completed" and not (turn["turn"] in stopped and turn["status"] == "cancelled"):
            name, what = f"{turn['room']}/{turn['request']}", f"{turn['status']} ({turn['reason']}): {turn['error']}"
            found.append(Difference(turn=name, place="status", what=what))
    return found


def _words_of(world: JSONObject, turn: JSONObject) -> list[str]:
    """What the person said in the messages that the turn brought."""
    messages = world["rooms"].get(turn["room"], {"messages": []})["messages"]
    return [text_of(message["parts"]) for message in messages if message["id"] in turn["inputs"]]


def _compare_ends(client: JSONObject) -> list[Difference]:
    """Who asked received the end."""
    missing = [request for request in client["sent"] if request not in client["ended"]]
    place = f"client {client['client']}"
    return [
        Difference(turn=f"{client['room']}/{request}", place=place, what="never heard the end") for request in missing
    ]


def main(words: list[str]) -> int:
    """Gather, compare, print. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.oracle", description=__doc__)
    parser.add_argument("brief", nargs="?", type=Path)
    parser.add_argument("--world", type=Path, help="compare what was gathered before")
    parser.add_argument("--keep", type=Path, help="where to keep what was gathered")
    options = parser.parse_args(words)
    source = options.world or options.brief
    if source is None:
        parser.error("a brief or --world is needed")
    content = json.loads(source.read_text(encoding="utf-8"))
    world = content if options.world else collect(content)
    if options.keep:
        options.keep.write_text(json.dumps(world), encoding="utf-8")
    differences = compare(world)
    for difference in differences:
        sys.stdout.write(f"{difference}\n")
    missing = shortfalls(world)
    for line in missing:
        sys.stdout.write(f"too little compared | {line}\n")
    sys.stdout.write(f"{figures(world)}: {len(differences)} differences\n")
    return 1 if differences or missing else 0


def figures(world: JSONObject) -> str:
    """What was compared, in one line."""
    records = sum(len(segment["texts"]) for turn in world["turns"] for segment in turn["cold"])
    frames = sum(len(line["frames"]) for client in world["clients"] for line in client["connections"])
    said = [turn for turn in world["turns"] if turn["cold"]]
    sizes = f"{len(world['turns'])} turns ({len(said)} with an answer), {records} records, {frames} frames"
    held = f"{len(world['clients'])} clients, {len(world['views'])} views"
    shares = ", ".join(f"{name} {done}/{of}" for name, (done, of) in count(world).items())
    return f"{sizes}, {held}; {shares}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
