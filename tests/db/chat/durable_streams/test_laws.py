"""Random appends, forks, closings, deletions and ends of life agree with a small oracle."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chat.durable_streams import wire
from chat.durable_streams.errors import StreamRefused
from chat.durable_streams.finding import remove_ended
from chat.durable_streams.reading import open_read, read_chunk, read_next
from chat.durable_streams.wire import ProducerClaim
from chat.durable_streams.writing import Addition, Creation, append, create_stream, delete_stream
from chat.models import DurableStream, StreamEntry
from tests.budget import examples

NAMES = ("a", "b", "c", "d")
TYPE = "text/plain"


@dataclass
class Log:
    """A stream as the oracle has it: all its bytes, those of its source included."""

    data: bytes = b""
    is_closed: bool = False
    source: str = ""
    is_gone: bool = False
    producers: dict[str, tuple[int, int]] = field(default_factory=dict)


class Oracle:
    """The paths and their logs. Each method returns the status that a request would have."""

    def __init__(self) -> None:
        self.logs: dict[str, Log] = {}

    def create(self, name: str, data: bytes, source: str, at: int) -> str:
        found = self.logs.get(name)
        if found is not None:
            return "conflict"
        if not source:
            self.logs[name] = Log(data)
            return "made"
        origin = self.logs.get(source)
        if origin is None or origin.is_gone:
            return "no source"
        if at > len(origin.data):
            return "invalid"
        self.logs[name] = Log(origin.data[:at] + data, source=source)
        return "made"

    def append(self, name: str, data: bytes, claim: ProducerClaim | None, *, closes: bool) -> str:
        log = self.logs.get(name)
        if log is None or log.is_gone:
            return "missing"
        if log.is_closed:
            return "closed"
        if claim is not None:
            epoch, seq = log.producers.get(claim.id, (claim.epoch, -1))
            if claim.epoch < epoch:
                return "fenced"
            expected = 0 if claim.epoch > epoch else seq + 1
            if claim.seq < expected:
                return "known"
            if claim.seq > expected:
                return "gap"
            log.producers[claim.id] = (claim.epoch, claim.seq)
        log.data += data
        log.is_closed = closes
        return "stored"

    def delete(self, name: str) -> str:
        log = self.logs.get(name)
        if log is None or log.is_gone:
            return "missing"
        self._remove(name)
        return "deleted"

    def _remove(self, name: str) -> None:
        if any(each.source == name for each in self.logs.values()):
            self.logs[name].is_gone = True
            return
        source = self.logs.pop(name).source
        if source and self.logs[source].is_gone:
            self._remove(source)


TEXTS = st.binary(min_size=1, max_size=6)
CLAIMS = st.none() | st.builds(ProducerClaim, id=st.just("p"), epoch=st.integers(0, 2), seq=st.integers(0, 3))
STEPS = st.one_of(
    st.tuples(st.just("create"), st.sampled_from(NAMES), st.binary(max_size=6), st.just(""), st.just(0)),
    st.tuples(
        st.just("create"), st.sampled_from(NAMES), st.binary(max_size=6), st.sampled_from(NAMES), st.integers(0, 15)
    ),
    st.tuples(st.just("append"), st.sampled_from(NAMES), TEXTS, CLAIMS, st.sampled_from([False, False, False, True])),
    st.tuples(st.just("delete"), st.sampled_from(NAMES)),
    st.tuples(st.just("end"), st.sampled_from(NAMES)),
)


def outcome(step: tuple[Any, ...], owner_id: int, oracle: Oracle) -> None:
    """Do a step on both and compare."""
    call: Callable[[], object]
    match step:
        case ("create", name, data, source, at):
            wanted = Creation(path=name, content_type=TYPE, body=data)
            if source:
                wanted = replace(wanted, forked_from=source, fork_offset=wire.format_offset(at))
            expected, call = oracle.create(name, data, source, at), lambda: create_stream(owner_id, wanted)
            is_refused = expected != "made"
            if expected == "conflict" and not source and not oracle.logs[name].is_gone:
                return  # the same again is no conflict; the published suite has these cases
        case ("append", name, data, claim, closes):
            addition = Addition(path=name, content_type=TYPE, body=data, producer=claim, closes=closes)
            expected, call = oracle.append(name, data, claim, closes=closes), lambda: append(owner_id, addition)
            is_refused = expected not in {"stored", "known"}
            if expected == "closed":  # what closed it may come again
                return
        case ("delete", name):
            expected, call = oracle.delete(name), lambda: delete_stream(owner_id, name)
            is_refused = expected == "missing"
        case ("end", name):
            row = DurableStream.objects.filter(owner_id=owner_id, path=name, deleted_at=None)
            row.update(expires_at=timezone.now() - timedelta(seconds=1))
            oracle.delete(name)
            remove_ended()
            return
    try:
        call()
    except StreamRefused:
        assert is_refused, (step, expected)
    else:
        assert not is_refused, (step, expected)


def check(owner_id: int, oracle: Oracle, names: Sequence[str]) -> None:
    for name in names:
        log = oracle.logs.get(name)
        if log is None or log.is_gone:
            with pytest.raises(StreamRefused):
                open_read(owner_id, name, wire.BEGINNING)
            continue
        for start in {0, len(log.data) // 2, len(log.data)}:
            opened = open_read(owner_id, name, wire.format_offset(start))
            chunk = read_chunk(opened.stream, opened.position)
            found = chunk.data
            while not chunk.is_up_to_date:
                chunk = read_next(opened.stream.pk, chunk.next)
                found += chunk.data
            assert found == log.data[start:]
            assert chunk.is_closed == log.is_closed
    assert DurableStream.objects.filter(owner_id=owner_id).count() == len(oracle.logs)
    rows = StreamEntry.objects.filter(stream__owner=owner_id)
    assert not oracle.logs or rows.count() <= sum(len(each.data) for each in oracle.logs.values())


@pytest.mark.django_db
@given(st.lists(STEPS, max_size=20))
@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_streams_agree_with_the_oracle(alice: User, steps: list[tuple[Any, ...]]) -> None:
    DurableStream.objects.filter(owner=alice).delete()
    oracle = Oracle()
    for step in steps:
        outcome(step, alice.pk, oracle)
        check(alice.pk, oracle, step[1:2])
    check(alice.pk, oracle, NAMES)
