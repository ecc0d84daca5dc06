"""The records of what models were asked: each holds what is new since the request before it.

A conversation of many turns sends the same beginning again and again. The first record of a turn names the last one of
the turn before (`after`), whose *marks* say how far both agree, so that it need not be read whole. A record that shares
nothing is whole, and begins a *chain*; so does the first one of a turn when the chain has grown as large again as its
beginning, or is a day old: all records together grow with the conversation, and no record needs one that was kept
much longer. A reader who misses one sees it at the hash of the whole. Pure.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from sessions_app.core.messages.forms import NO_FORMS, KeptForms
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, byte_size, fingerprint

MAX_CHAIN_SECONDS: Final = 86_400

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """A whole request: its messages, and all else of its body."""

    messages: tuple[JSONValue, ...] = ()
    rest: JSONObject = field(default_factory=dict)


NOTHING_SENT: Final = SentRequest()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainEnd:
    """The last record of the turn before: where it is stored, and what it says of its chain."""

    fiber_id: str
    step_key: str
    stored: JSONObject  # the `request` of the record

    @property
    def can_be_followed(self) -> bool:
        """Whether the record says what a further one needs; those of earlier versions do not."""
        return isinstance(self.stored.get("marks"), list) and isinstance(self.stored.get("chain"), dict)


class RequestRecorder:
    """Makes the records of one turn's requests. `position`: of the turn in its conversation."""

    def __init__(
        self,
        *,
        position: int = 0,
        before: ChainEnd | None = None,
        sent: SentRequest = NOTHING_SENT,
        forms: KeptForms = NO_FORMS,
    ) -> None:
        """`sent`: the request behind the record `before`; only needed where this turn has records already.

        `forms`: of the messages on the wire.
        """
        self._position = position
        self._forms = forms
        self._before = before if before is not None and before.can_be_followed else None
        self._sent = sent
        self._hashes: list[str] = []
        self._chain: JSONObject | None = None  # of this turn's last record
        self._made: tuple[str, SentRequest, list[str]] | None = None  # a record, its request and the hashes of that

    def describe(self, body: JSONObject, *, now: float) -> JSONObject:
        """The record of a request that was sent at this time (epoch seconds)."""
        key, request = _split(body)
        hashes = _hashes(request.messages, self._sent.messages, self._hashes, self._forms)
        end = self._followed(now) if self._chain is None else None
        rest = fingerprint(request.rest)
        shared, is_same_rest = self._shared(request) if end is None else _agreeing(end, hashes, rest)
        new: JSONObject = {key: list(request.messages[shared:]), **({} if is_same_rest else request.rest)}
        size = byte_size(new)
        chain: JSONObject = {"from": self._position, "at": int(now), "whole": size, "since": 0}
        former = self._chain if end is None else end.stored["chain"]
        if former is not None and (self._chain is not None or shared):
            chain = {**former, "since": former["since"] + size}
        digest = _hash_of(key, hashes, rest)
        self._made = digest, request, hashes
        stored: JSONObject = {
            "hash": digest,
            "shared_messages": shared,
            "messages_key": key,
            "body": new,
            "rest": rest,
            "same_rest": is_same_rest,
            "marks": [[count, hashes[count - 1]] for count in _mark_counts(len(hashes))],
            "chain": chain,
        }
        if end is not None and shared:
            stored["after"] = {"fiber": end.fiber_id, "key": end.step_key}
        return stored

    def settled(self, stored: JSONObject) -> SentRequest:
        """Note that a record is stored, by this attempt or an earlier one; gives the whole request."""
        if self._made is not None and self._made[0] == stored["hash"]:
            _, request, self._hashes = self._made
        else:
            request = restored(stored, self._sent)
            self._hashes = _hashes(request.messages, self._sent.messages, self._hashes, self._forms)
        self._sent, self._made = request, None
        self._chain = stored.get("chain") or self._chain or {"from": self._position, "at": 0, "whole": 0, "since": 0}
        return request

    def _followed(self, now: float) -> ChainEnd | None:
        """The record before, unless a new chain begins."""
        if self._before is None:
            return None
        chain: JSONObject = self._before.stored["chain"]
        is_long = chain["since"] > chain["whole"] or now - chain["at"] > MAX_CHAIN_SECONDS
        return None if is_long else self._before

    def _shared(self, request: SentRequest) -> tuple[int, bool]:
        if self._chain is None:
            return 0, False
        same = 0
        for mine, before in zip(request.messages, self._sent.messages, strict=False):
            if mine != before:
                break
            same += 1
        return same, request.rest == self._sent.rest


def request_in(record: JSONValue) -> JSONObject | None:
    """The request of a step's record; nothing for a step without one."""
    stored = record.get("request") if isinstance(record, dict) else None
    return stored if isinstance(stored, dict) and isinstance(stored.get("body"), dict) else None


def restored(stored: JSONObject, before: SentRequest) -> SentRequest:
    """The whole request of a record. `before`: that of the record before it, in its turn or named by it."""
    _, fresh = _split(stored["body"], key=str(stored.get("messages_key", "messages")))
    shared = stored.get("shared_messages")
    messages = (*before.messages[: shared if isinstance(shared, int) else 0], *fresh.messages)
    return SentRequest(messages=messages, rest=before.rest if stored.get("same_rest") else fresh.rest)


def body_of(stored: JSONObject, request: SentRequest) -> JSONObject:
    """The body as it was sent."""
    messages = [{**each} if isinstance(each, dict) else each for each in request.messages]  # hooks get them
    return {**request.rest, str(stored.get("messages_key", "messages")): messages}


def _split(body: JSONObject, *, key: str = "") -> tuple[str, SentRequest]:
    key = key or ("messages" if "messages" in body else "input")
    messages = body.get(key)
    rest = {name: value for name, value in body.items() if name != key}
    return key, SentRequest(messages=tuple(messages) if isinstance(messages, list) else (), rest=rest)


def is_whole(stored: JSONObject, body: JSONObject) -> bool:
    """Whether a body is the one that a record stands for, by its hash. Those of earlier versions have that of all."""
    key, request = _split(body, key=str(stored.get("messages_key", "messages")))
    digest = _hash_of(key, _hashes(request.messages, (), [], NO_FORMS), fingerprint(request.rest))
    return stored.get("hash") in (digest, fingerprint(body))


def _hash_of(key: str, hashes: Sequence[str], rest: str) -> str:
    """The hash of a request, of that of its messages and that of all else: a long conversation is not read again."""
    return fingerprint([key, hashes[-1] if hashes else "", rest])


def _agreeing(end: ChainEnd, hashes: Sequence[str], rest: str) -> tuple[int, bool]:
    """The number of leading messages that a request has in common with a record, by the marks of that."""
    common = (n for n, digest in end.stored["marks"] if 0 < n <= len(hashes) and hashes[n - 1] == digest)
    shared = max(common, default=0)
    return shared, shared > 0 and end.stored.get("rest") == rest


def _hashes(
    messages: Sequence[JSONValue], known: Sequence[JSONValue], hashes: Sequence[str], forms: KeptForms
) -> list[str]:
    """For each message a hash of it and all before it. `hashes`: those of the `known` ones."""
    made: list[str] = []
    for number, message in enumerate(messages):
        if number < len(hashes) and len(made) == number and message == known[number]:
            made.append(hashes[number])
            continue
        hashes = hashes[:number]
        made.append(_hash(made[-1] if made else "", message, forms))
    return made


def _hash(before: str, message: JSONValue, forms: KeptForms) -> str:
    link = forms.found(message, "hash")
    if isinstance(link, tuple) and link[0] == before:
        return str(link[1])
    made = hashlib.sha256(before.encode() + _encoded(message)).hexdigest()[:16]
    forms.note(message, "hash", (before, made))
    return made


def _encoded(message: JSONValue) -> bytes:
    """A message as bytes that are the same for equal ones. A long conversation has thousands."""
    try:
        return _encode(message)
    except (msgspec.MsgspecError, UnicodeError, OverflowError, RecursionError):  # half characters, very large numbers
        return fingerprint(message).encode()


def _mark_counts(count: int) -> Iterator[int]:
    """The leading parts that a record marks: all, and fewer and fewer of those before."""
    back = 0
    while back < count:
        yield count - back
        back = back + 1 if back < 4 else back * 2
