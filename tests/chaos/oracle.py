"""The oracle: compares what every place says about every turn, byte for byte. Imports nothing of the product.

`python -m tests.chaos.oracle BRIEF.json [--keep WORLD.json]` gathers and compares; `--world WORLD.json` compares what
was gathered before. It prints each difference with turn, place and first differing byte, and exits with 1 if there is
one.

Places: the provider's own log, the hot log (Redis), the cold log and the stored message (database), the chunks and the
transcript that each client holds, the text that each page shows.
"""

import argparse
import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.chaos.evidence import collect, marker_of, text_of
from tests.chaos.reading import message_parts, steps

JSONObject = dict[str, Any]
TERMINAL = ("completed", "cancelled", "failed", "interrupted")
AFTER_KILL_SECONDS = 15.0


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One disagreement. `at`: the record, step or byte where it begins."""

    turn: str
    place: str
    what: str
    at: int = 0
    expected: str = ""
    found: str = ""

    def __str__(self) -> str:
        shown = f": expected {self.expected!r}, found {self.found!r}" if self.expected or self.found else ""
        return f"{self.turn} | {self.place} | {self.what} at {self.at}{shown}"


def compare(world: JSONObject) -> list[Difference]:
    """Return every difference."""
    found = []
    for turn in world["turns"]:
        found += Comparison(world, turn).run()
    found += _compare_requests(world)
    for client in world["clients"]:
        found += _compare_transcript(world, client)
    for page in world["pages"]:
        found += _compare_page(world, page)
    return found


def _first_byte(expected: str, found: str) -> int:
    one, other = expected.encode("utf-8", "surrogatepass"), found.encode("utf-8", "surrogatepass")
    pairs = zip(one, other, strict=False)
    return next((at for at, (mine, theirs) in enumerate(pairs) if mine != theirs), min(len(one), len(other)))


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


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
        if expected or found:
            first = _first_byte(expected, found)
            what = f"{what}, first differing byte {first}"
            low = max(0, first - 30)
            expected, found = expected[low : first + 60], found[low : first + 60]
        turn = f"{self.turn['room']}/{self.turn['request']} {self.turn['turn']}"
        self.found.append(Difference(turn=turn, place=place, what=what, at=at, expected=expected, found=found))

    @property
    def is_whole(self) -> bool:
        """Whether the answer came to its own end."""
        return bool(self.turn["status"] == "completed")

    def _held(self) -> list[tuple[str, list[list[JSONObject]]]]:
        """Frames of this turn by client, connection by connection."""
        found = []
        for client in self.world["clients"]:
            if client["room"] == self.turn["room"]:
                lines = [[f for f in line if f["request"] == self.turn["request"]] for line in client["connections"]]
                found.append((f"client {client['client']}", [line for line in lines if line]))
        return found

    def _agreed(self) -> list[str]:
        """The sequence that most places hold: the one that is wrong is then the one that is named."""
        sequences = [self.cold, [text for _, text in self.turn["hot"]]]
        for _, lines in self.held:
            sequences += [
                [f["body"] for f in line if f["kind"] == "chunk"] for line in lines if line[-1]["kind"] == "done"
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
            length = _first_byte(thought, rest) if rest else 0
            cuts += 0 < length < len(thought)
            is_complete = is_complete or length == len(thought)
            rest = rest[length:]
        if rest or cuts > self.turn["seals"] + (not self.is_whole) or (self.is_whole and not is_complete):
            found = "".join(step["reasonings"])
            self.say("log against provider", f"reasoning of step {number}", expected="".join(sent), found=found)

    def check_calls(self, number: int, step: JSONObject, request: JSONObject, excused: int) -> int:
        """Calls come in order and whole; only a sealed step may lack the end of the last one, or those after it."""
        is_cut = False
        for place, call in enumerate(step["calls"]):
            sent = request["calls"][place] if place < len(request["calls"]) else {"id": "", "name": "", "raw": ""}
            is_last = place == len(step["calls"]) - 1
            is_same = (
                call["raw"] == sent["raw"] and call["is_whole"] and call["input"] == json.loads(sent["raw"] or "{}")
            )
            is_begin = is_last and not call["is_whole"] and sent["raw"].startswith(call["raw"])
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
        has_content = any(part["type"] != "step-start" for part in expected)
        if len(stored) != int(has_content):
            self.say("stored message", f"is there {len(stored)} times instead of {int(has_content)}")
        for parts in stored:
            if _canonical(parts) != _canonical(expected):
                self.say("stored message", "parts", expected=_canonical(expected), found=_canonical(parts))

    def check_clients(self) -> None:
        """Each connection got each record once and in order, from the beginning; after the end nothing."""
        for name, lines in self.held:
            for line in lines:
                self._check_line(name, line)

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


def _compare_requests(world: JSONObject) -> list[Difference]:
    """Everything asked for was accepted once, holds the words of the person, and came to its end."""
    found = []
    turns = {(turn["room"], turn["request"]): turn for turn in world["turns"]}
    for request in world["requests"]:
        name = f"{request['room']}/{request['request']}"
        if request["request"] is None:  # a page's: it is known by its words
            said = [turn for turn in world["turns"] if request["text"] in _words_of(world, turn)]
            turn = said[0] if len(said) == 1 else None
            name = f"{request['room']}/{marker_of(request['text'])}"
        else:
            turn = turns.get((request["room"], request["request"]))
        if turn is None:
            found.append(Difference(turn=name, place="database", what="the request was not accepted exactly once"))
            continue
        if turn["status"] != "completed" and not (request["stopped"] and turn["status"] == "cancelled"):
            what = f"{turn['status']} ({turn['reason']}): {turn['error']}"
            found.append(Difference(turn=name, place="status", what=what))
        words, text = _words_of(world, turn), request["text"]
        if text is not None and words != [text]:
            found.append(Difference(turn=name, place="user message", what="text", expected=text, found="".join(words)))
    return found


def _words_of(world: JSONObject, turn: JSONObject) -> list[str]:
    """What the person said in the messages that the turn brought."""
    messages = world["rooms"].get(turn["room"], {"messages": []})["messages"]
    return [text_of(message["parts"]) for message in messages if message["id"] in turn["inputs"]]


def path_of(room: JSONObject) -> list[JSONObject]:
    """The shown path, root first, then what is not placed."""
    by_pk = {message["pk"]: message for message in room["messages"]}
    path, at = [], room["leaf"]
    while at is not None:
        path.append(by_pk[at])
        at = by_pk[at]["parent"]
    return path[::-1] + [message for message in room["messages"] if not message["placed"]]


def _compare_transcript(world: JSONObject, client: JSONObject) -> list[Difference]:
    place = f"client {client['client']}"
    expected = path_of(world["rooms"][client["room"]])
    found = []
    ids, held = [m["id"] for m in expected], [m["id"] for m in client["transcript"]]
    if ids != held:
        at = _first_byte(_canonical(ids), _canonical(held))
        return [
            Difference(
                turn=client["room"],
                place=f"{place} transcript",
                what="messages",
                at=at,
                expected=str(ids[-3:]),
                found=str(held[-3:]),
            )
        ]
    for mine, theirs in zip(expected, client["transcript"], strict=True):
        one, other = _canonical([mine["role"], mine["parts"]]), _canonical([theirs["role"], theirs["parts"]])
        if one != other:
            at = _first_byte(one, other)
            what = f"message {mine['id']}, first differing byte {at}"
            near = slice(max(0, at - 30), at + 60)
            found.append(
                Difference(
                    turn=f"{client['room']} {mine['turn']}",
                    place=f"{place} transcript",
                    what=what,
                    at=at,
                    expected=one[near],
                    found=other[near],
                )
            )
    missing = [request for request in client["sent"] if request not in client["ended"]]
    found += [
        Difference(turn=f"{client['room']}/{request}", place=place, what="never heard the end") for request in missing
    ]
    return found


def _compare_page(world: JSONObject, page: JSONObject) -> list[Difference]:
    """The page shows the end of the path, each message with its text."""
    place = f"page {page['tab']}"
    expected = path_of(world["rooms"][page["room"]])[-len(page["messages"]) or None :]
    ids, shown = [m["id"] for m in expected], [m["id"] for m in page["messages"]]
    if ids != shown:
        return [Difference(turn=page["room"], place=place, what="messages", expected=str(ids), found=str(shown))]
    found = []
    for mine, theirs in zip(expected, page["messages"], strict=True):
        texts = [part["text"].strip() for part in mine["parts"] if part["type"] == "text"]
        one, other = "\n".join(texts), "\n".join(text.strip() for text in theirs["texts"])
        if one != other:
            at = _first_byte(one, other)
            near = slice(max(0, at - 30), at + 60)
            what = f"message {mine['id']}, first differing byte {at}"
            found.append(
                Difference(
                    turn=f"{page['room']} {mine['turn']}",
                    place=place,
                    what=what,
                    at=at,
                    expected=one[near],
                    found=other[near],
                )
            )
    return found


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
    records = sum(len(segment["texts"]) for turn in world["turns"] for segment in turn["cold"])
    counts = (
        f"{len(world['turns'])} turns, {records} records, {len(world['clients'])} clients, {len(world['pages'])} pages"
    )
    sys.stdout.write(f"{counts}: {len(differences)} differences\n")
    return 1 if differences else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
