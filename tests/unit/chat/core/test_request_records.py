"""Records of requests hold what is new: over turns, from any point, whatever a request has in common with the last."""

from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from chat.core.loop.request_records import (
    NOTHING_SENT,
    ChainEnd,
    RequestRecorder,
    SentRequest,
    body_of,
    is_whole,
    restored,
)
from tests.budget import examples
from thinkproject.kernel.jsonvalue import byte_size, dump, load

NOW = 1_000_000.0
Body = dict[str, Any]


class Store:
    """Turns, each with the records of its requests, as the journal keeps them."""

    def __init__(self) -> None:
        self.records: list[tuple[str, str, Any]] = []
        self.sent: list[Body] = []
        self.now = NOW

    def end(self) -> ChainEnd | None:
        return (
            ChainEnd(fiber_id=(last := self.records[-1])[0], step_key=last[1], stored=last[2]) if self.records else None
        )

    def turn(self, *bodies: Body, dies_after: int = 99) -> None:
        fiber_id = f"f{len({fiber for fiber, _, _ in self.records})}"
        position, before = len(self.sent), self.end()
        recorder = RequestRecorder(position=position, before=before)
        for number, body in enumerate(bodies):
            if number == dies_after:  # another attempt goes on over the records
                mine = [stored for fiber, _, stored in self.records if fiber == fiber_id]
                whole = self.whole_of(mine[0]["after"]) if mine and "after" in mine[0] else NOTHING_SENT
                recorder = RequestRecorder(position=position, before=before, sent=whole)
                for stored in mine:
                    recorder.settled(stored)
            stored = load(dump(recorder.describe(body, now=self.now)))
            assert body_of(stored, recorder.settled(stored)) == body
            self.records.append((fiber_id, f"model:{number}", stored))
            self.sent.append(body)

    def whole_of(self, name: Any) -> SentRequest:
        return self.restored()[name["fiber"], name["key"]]

    def restored(self) -> dict[tuple[str, str], SentRequest]:
        found: dict[tuple[str, str], SentRequest] = {}
        last: dict[str, SentRequest] = {}
        for fiber, key, stored in self.records:
            after = stored.get("after")
            before = last.get(fiber) or (found[after["fiber"], after["key"]] if after else NOTHING_SENT)
            found[fiber, key] = last[fiber] = restored(stored, before)
        return found

    def check(self) -> None:
        bodies = [body_of(s, whole) for (_, _, s), whole in zip(self.records, self.restored().values(), strict=True)]
        assert bodies == self.sent
        for (_, _, stored), sent in zip(self.records, self.sent, strict=True):
            assert is_whole(stored, sent)
            assert not is_whole(stored, {**sent, "more": 1})


def body(*texts: str, key: str = "messages", **rest: Any) -> Body:
    return {"model": "m", "tools": [{"name": "look", "text": "t" * 300}], key: [{"content": t} for t in texts], **rest}


def test_the_first_request_of_a_turn_holds_what_is_new_since_the_turn_before() -> None:
    store = Store()
    store.turn(body("s" * 900, "u1"), body("s" * 900, "u1", "a1", "t1"))
    store.turn(body("s" * 900, "u1", "a1", "t1", "a2", "u2"))
    first, second, third = (stored for _, _, stored in store.records)
    assert "after" not in first
    assert second["body"] == {"messages": [{"content": "a1"}, {"content": "t1"}]}
    assert third["body"] == {"messages": [{"content": "a2"}, {"content": "u2"}]}
    assert third["after"] == {"fiber": "f0", "key": "model:1"}
    store.check()


def test_what_differs_is_stored() -> None:
    store = Store()
    store.turn(body("s", "u1"))
    store.turn(body("s", "u1", "a1", "u2", model="other"))
    assert store.records[-1][2]["shared_messages"] == 2
    assert "model" in store.records[-1][2]["body"]
    store.turn(body("another", "u1", "a1", "u2", "a2", "u3", model="other"))
    assert "after" not in store.records[-1][2]
    store.turn(body("another", "u1", key="input"))
    store.check()


def test_a_chain_that_is_a_day_old_begins_anew() -> None:
    store = Store()
    store.turn(body("s", "u1"))
    store.now += 86_401
    store.turn(body("s", "u1", "a1", "u2"))
    assert "after" not in store.records[-1][2]
    store.check()


def test_a_record_of_an_earlier_version_begins_no_chain() -> None:
    store = Store()
    store.records.append(
        ("f0", "model:0", {"hash": "h", "shared_messages": 0, "messages_key": "messages", "body": body()})
    )
    recorder = RequestRecorder(position=1, before=store.end())
    assert "after" not in recorder.describe(body("u"), now=NOW)


def test_records_grow_with_the_conversation_and_not_with_its_square() -> None:
    sizes = {}
    for turns in (50, 100, 200):
        store, texts = Store(), ["s" * 2_000]
        for number in range(turns):
            texts.append(f"u{number}" * 50)
            first = body(*texts)
            texts.append(f"a{number}" * 50)
            store.turn(first, body(*texts))
            texts.append(f"b{number}" * 50)
        store.check()
        sizes[turns] = sum(byte_size(stored["body"]) for _, _, stored in store.records)
    assert sizes[200] < 2.6 * sizes[100] < 2.6 * 2.6 * sizes[50]
    assert sizes[200] < 5 * byte_size(store.sent[-1])


TEXTS = st.lists(st.sampled_from("abc"), max_size=7)


@given(st.lists(st.tuples(st.lists(TEXTS, min_size=1, max_size=3), st.integers(0, 3), st.booleans()), max_size=6))
@settings(max_examples=examples(200), deadline=None)
def test_every_request_is_put_together_exactly(turns: list[tuple[list[list[str]], int, bool]]) -> None:
    store = Store()
    for requests, dies_after, is_other in turns:
        store.turn(*(body(*texts, model="o" if is_other else "m") for texts in requests), dies_after=dies_after)
    store.check()
