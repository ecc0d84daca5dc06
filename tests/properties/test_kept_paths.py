"""A path that stays in a process is never another than the rows give, whatever is written in between, and by whom."""

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chat.core.context.context_policy import ContextPolicy
from chat.core.context.prompt import messages_in_sight
from chat.core.context.result_files import Sight
from chat.core.loop.request_records import RequestRecorder
from chat.core.model.language_model import ModelRequest
from chat.core.model.overflow import estimate_request
from chat.llm.adapters.chat_completions import ChatCompletionsModel
from chat.llm.adapters.transport import encoded
from chat.llm.endpoint import Endpoint
from sessions_app.compactions.services import add_compaction, compactions, edit_compaction, undo_compaction
from sessions_app.core.compaction.pruning import as_sent
from sessions_app.core.messages.forms import FORM_BYTES, NO_FORMS, KeptForms
from sessions_app.core.messages.parts import is_pending
from sessions_app.core.messages.shapes import Message
from sessions_app.core.messages.tree import Leaf
from sessions_app.errors import SessionError
from sessions_app.messages import kept_paths, selectors, services
from sessions_app.messages.kept_paths import KeptPaths
from sessions_app.messages.services import place_input
from sessions_app.messages.writer import Placed
from sessions_app.testing import text_message
from tests.budget import examples
from thinkproject.kernel.jsonvalue import dump

names = count()

ADAPTER = ChatCompletionsModel(Endpoint(provider="scripted", base_url="http://127.0.0.1:9/v1", api_key="k"), "m")

CALLS: list[Any] = [
    {"type": "tool-read", "toolCallId": "c1", "state": "output-available", "input": {}, "output": "x" * 50},
    {"type": "tool-read", "toolCallId": "c2", "state": "input-available", "input": {}},
]


class Undone(Exception):
    """A transaction that ends without a commit."""


def record_of(messages: list[Message], forms: KeptForms) -> tuple[bytes, str, int]:
    """The bytes of a request, their record, and how many tokens it is taken to have."""
    policy = ContextPolicy(max_text_chars=12, keep_messages=2)
    sight = Sight(accepts_images=False, accepts_documents=False, load_file=lambda _url: None)
    made = messages_in_sight(messages, sight, policy=policy, forms=forms)
    request = ModelRequest(system="Be kind.", messages=made, forms=forms)
    body = ADAPTER.describe(request)
    return encoded(body), dump(RequestRecorder(forms=forms).describe(body, now=0.0)), estimate_request(request)


class Conversation:
    """A session with its forks, and the processes that run their turns."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.sessions = [services.create_session().pk]
        self.workers = [KeptPaths(), KeptPaths()]

    @property
    def session_id(self) -> str:
        return self.data.draw(st.sampled_from(self.sessions))

    def some(self, session_id: str) -> str | None:
        """A message of the shown path, or of any other."""
        ids = [message.id for message in selectors.model_history(session_id, max_messages=1_000)]
        if self.data.draw(st.booleans()):
            pages = selectors.path_page(session_id, limit=500)
            ids = [message.id for message in pages.messages]
        return self.data.draw(st.sampled_from(ids)) if ids else None

    def turn(self) -> None:
        """Place a question, here or above, and read what a model is sent."""
        session_id, name = self.session_id, f"q{next(names)}"
        after: str | Leaf = (
            self.some(session_id) or Leaf.ACTIVE if self.data.draw(st.integers(0, 3)) == 0 else Leaf.ACTIVE
        )
        services.queue_messages(session_id, [text_message("user", name, name)])
        worker, is_lost = self.data.draw(st.sampled_from(self.workers)), self.data.draw(st.integers(0, 3)) == 0
        try:
            with transaction.atomic():
                placed = place_input(session_id, [name], after=after, left_behind=lambda _others: ())
                self.check(worker, session_id, placed)
                if is_lost:
                    raise Undone
        except Undone:
            return
        except SessionError:  # what it was meant for has no place there
            return
        if self.data.draw(st.booleans()):
            parts = CALLS if self.data.draw(st.booleans()) else text_message("assistant", name)["parts"]
            answer: Message = {"id": f"a{name}", "role": "assistant", "parts": parts}
            services.put_assistant(session_id, answer, after=name)

    def check(self, worker: KeptPaths, session_id: str, placed: Placed) -> None:
        assert placed.leaf_id is not None
        leaf = Leaf.ACTIVE if placed.is_shown and self.data.draw(st.booleans()) else placed.leaf_id
        found = worker.read(session_id, leaf, version=placed.version)
        wanted = selectors.model_history(session_id, leaf=leaf)
        assert list(found.messages) == wanted
        assert found.sent == as_sent(wanted, session_id)
        kept, anew = record_of(found.sent, found.forms), record_of(as_sent(wanted, session_id), NO_FORMS)
        assert kept == anew
        assert not any(is_pending(part) for message in wanted[: found.settled] for part in message.parts)

    def append(self) -> None:
        role = self.data.draw(st.sampled_from(["user", "assistant"]))
        services.append_messages(self.session_id, [text_message(role, "more", f"m{next(names)}")])

    def edit(self) -> None:
        session_id = self.session_id
        if (name := self.some(session_id)) is not None and not name.startswith("compaction_"):
            text = f"edited {next(names)}"
            services.update_message(session_id, name, lambda old: {**old, "parts": text_message("user", text)["parts"]})

    def settle(self) -> None:
        session_id = self.session_id
        for message in selectors.model_history(session_id):
            if any(map(is_pending, message.parts)):
                services.update_message(session_id, message.id, lambda old: {**old, "parts": CALLS[:1]})

    def show(self) -> None:
        session_id = self.session_id
        if (name := self.some(session_id)) is not None and not name.startswith("compaction_"):
            choose = self.data.draw(st.sampled_from([services.select_leaf, services.end_path_at]))
            choose(session_id, name)

    def delete(self) -> None:
        session_id = self.session_id
        if (name := self.some(session_id)) is not None:
            services.delete_message(session_id, name)

    def prune(self) -> None:
        session_id = self.session_id
        if (name := self.some(session_id)) is not None:
            services.prune_outputs(session_id, {name: ["c1"]})

    def summarise(self) -> None:
        session_id = self.session_id
        path = [message.id for message in selectors.path_page(session_id, limit=500).messages]
        if path:
            last = self.data.draw(st.integers(0, len(path) - 1))
            first = self.data.draw(st.integers(0, last))
            add_compaction(session_id, first_id=path[first], last_id=path[last], summary=f"summary {next(names)}")

    def reword(self) -> None:
        made = compactions(self.session_id)
        if made:
            edit_compaction(self.data.draw(st.sampled_from(made)).id, f"reworded {next(names)}")

    def undo(self) -> None:
        made = compactions(self.session_id)
        if made:
            undo_compaction(self.data.draw(st.sampled_from(made)).id)

    def archive(self) -> None:
        services.archive_beyond(self.session_id, self.data.draw(st.integers(1, 6)))

    def clear(self) -> None:
        services.clear_session(self.session_id)

    def fork(self) -> None:
        session_id = self.session_id
        if len(self.sessions) < 3 and (name := self.some(session_id)) is not None:
            self.sessions.append(services.fork_session(session_id, name).pk)

    def go_on(self) -> None:
        """Do one thing; turns are the commonest."""
        others: list[Callable[[], None]] = [
            *(self.append, self.edit, self.settle, self.show, self.delete, self.prune, self.summarise, self.reword),
            *(self.undo, self.archive, self.clear, self.fork),
        ]
        step = self.data.draw(st.sampled_from([self.turn] * len(others) + others))
        with suppress(SessionError):  # what was drawn cannot be done: then nothing is changed
            step()


@pytest.mark.django_db(transaction=True)
@settings(max_examples=examples(250), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_kept_path_is_what_the_rows_give(data: st.DataObject) -> None:
    conversation = Conversation(data)
    for _ in range(data.draw(st.integers(5, 30))):
        conversation.go_on()
    conversation.turn()


@pytest.mark.django_db(transaction=True)
@settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_what_is_longer_than_a_model_gets_is_read_as_its_rows_say(data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selectors, "HISTORY_MESSAGES", data.draw(st.integers(2, 9)))
        patch.setattr(selectors, "HISTORY_BYTES", data.draw(st.sampled_from([300, 800, 10_000])))
        bounded: Any = selectors.model_history.__kwdefaults__
        patch.setitem(bounded, "max_messages", selectors.HISTORY_MESSAGES)
        patch.setitem(bounded, "max_bytes", selectors.HISTORY_BYTES)
        conversation = Conversation(data)
        for _ in range(data.draw(st.integers(5, 20))):
            conversation.go_on()
        conversation.turn()


def place(session_id: str, name: str) -> Placed:
    services.queue_messages(session_id, [text_message("user", name, name)])
    return place_input(session_id, [name], after=Leaf.ACTIVE, left_behind=lambda _others: ())


def read(worker: KeptPaths, session_id: str, name: str) -> kept_paths.ReadPath:
    with transaction.atomic():
        placed = place(session_id, name)
        return worker.read(session_id, Leaf.ACTIVE, version=placed.version)


@pytest.mark.django_db(transaction=True)
def test_the_next_turn_reads_only_what_is_new(django_assert_num_queries: Any) -> None:
    session_id, worker = services.create_session().pk, KeptPaths()
    services.append_messages(session_id, [text_message("user", "old", f"o{number}") for number in range(40)])
    first = read(worker, session_id, "one")
    services.put_assistant(session_id, text_message("assistant", "answer", "two"), after="one")
    with transaction.atomic():
        placed = place(session_id, "three")
        with django_assert_num_queries(1):
            second = worker.read(session_id, Leaf.ACTIVE, version=placed.version)
    assert [message.id for message in second.messages[41:]] == ["two", "three"]
    assert all(mine is kept for mine, kept in zip(second.messages, first.messages, strict=False))
    assert second.settled == 43


@pytest.mark.django_db(transaction=True)
def test_what_was_used_longest_ago_goes_first(monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any) -> None:
    monkeypatch.setattr(kept_paths, "KEPT_BYTES", 2 * (2 * FORM_BYTES + 1_300))
    worker = KeptPaths()
    sessions = [services.create_session().pk for _ in range(3)]
    for session_id in sessions:
        services.append_messages(session_id, [text_message("user", "x" * 1_000, f"{session_id}-x")])
    for session_id in sessions:
        read(worker, session_id, f"{session_id}-1")
    reads = {}
    for session_id in sessions:
        kept = worker._find(session_id)
        reads[session_id] = kept is not None
    assert list(reads.values()) == [False, True, True]
    worker.clear()
    assert worker._find(sessions[2]) is None


@pytest.mark.django_db(transaction=True)
def test_a_path_that_no_turn_has_used_for_long_goes_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, one, other = KeptPaths(), services.create_session().pk, services.create_session().pk
    read(worker, one, "one")
    monkeypatch.setattr(kept_paths, "KEPT_SECONDS", -1)
    read(worker, other, "other")
    assert worker._find(one) is None


@pytest.mark.django_db(transaction=True)
def test_what_was_undone_was_never_kept() -> None:
    session_id, worker = services.create_session().pk, KeptPaths()
    read(worker, session_id, "one")
    with transaction.atomic():  # another change will have the number of this one
        placed = place(session_id, "undone")
        assert worker.read(session_id, Leaf.ACTIVE, version=placed.version).messages[-1].id == "undone"
        transaction.set_rollback(True)
    assert [message.id for message in read(worker, session_id, "two").messages] == ["one", "two"]


@pytest.mark.django_db(transaction=True)
def test_what_is_archived_is_not_kept() -> None:
    session_id, worker = services.create_session().pk, KeptPaths()
    for name in ("one", "two", "three"):
        read(worker, session_id, name)
    services.archive_beyond(session_id, 2)
    assert [message.id for message in read(worker, session_id, "four").messages] == ["two", "three", "four"]
