"""Whatever happens at the same time: a feed has no gap, no wrong order, and with what was there all that there is."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chat.feed import reading
from chat.feed.errors import FeedGone
from chat.feed.reading import NamedChange, open_feed, prune_feeds, read_changes
from chat.models import AgentInstance, AgentRun, FeedChange, FeedHead
from sessions_app.errors import MessageNotFound
from sessions_app.messages.services import append_messages, clear_session, delete_message
from sessions_app.models import Message
from sessions_app.testing import text_message
from tests.budget import examples
from tests.db.races import together
from thinkproject.kernel.ids import new_id

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]
DEEDS = ("add", "add two", "fail", "delete", "rename", "clear")


class RolledBackError(Exception):
    """Raised by a writer that takes everything back."""


@dataclass
class Deed:
    """One transaction: the changes that it must be named by, and when its commit can have been."""

    names: list[tuple[str, str, str]]
    began: float
    ended: float = 0.0
    is_committed: bool = False


@dataclass
class Follower:
    """A reader as a client is: it opens, looks at everything, and follows; when something is gone it does so anew."""

    owner_id: int
    sessions: list[str]
    opened_at: float = 0.0
    looked_at: set[str] = field(default_factory=set)
    found: list[NamedChange] = field(default_factory=list)
    position: int = 0

    def open(self) -> None:
        self.position = open_feed(self.owner_id)
        self.opened_at = time.monotonic()
        rows = Message.objects.filter(session_id__in=self.sessions)
        self.looked_at = {f"{session}/{key}" for session, key in rows.values_list("session_id", "message_id")}
        self.found = []

    def step(self) -> bool:
        """Read on. Whether that was all."""
        try:
            page = read_changes(self.owner_id, self.position, limit=7)
        except FeedGone:
            self.open()
            return False
        assert [each.seq for each in page.changes] == list(range(self.position + 1, page.position + 1)), "a gap"
        self.found += page.changes
        self.position = page.position
        return page.is_up_to_date

    def state(self) -> set[str]:
        """The messages as who follows has them."""
        there = set(self.looked_at)
        for change in self.found:
            if change.op == "reset":
                there = {key for key in there if not key.startswith(f"{change.key}/")}
            elif change.type == "message":
                (there.discard if change.op == "delete" else there.add)(change.key)
        return there


def write(instance: AgentInstance, deeds: list[str], written: list[Deed]) -> None:
    session, own = str(instance.session_id), list[str]()
    for name in deeds:
        ids = [new_id("m") for _ in range(2 if name == "add two" else 1)]
        deed = Deed(names=[], began=time.monotonic())
        try:
            with transaction.atomic():
                if name in {"add", "add two", "fail"}:
                    append_messages(session, [text_message("user", "hi", key) for key in ids])
                    deed.names = [("message", "insert", f"{session}/{key}") for key in ids]
                elif name == "delete" and own and Message.objects.filter(message_id=own[-1]).exists():
                    delete_message(session, own[-1])
                    deed.names = [("message", "delete", f"{session}/{own.pop()}")]
                elif name == "clear":
                    clear_session(session)
                    deed.names = [("session", "reset", session)]
                elif name == "rename":
                    AgentInstance.objects.filter(pk=instance.pk).update(title=ids[0])
                    deed.names = [("conversation", "update", instance.pk)]
                if name == "fail":
                    raise RolledBackError
                deed.began = time.monotonic()
        except (RolledBackError, MessageNotFound):  # not there: another writer has cleared the history meanwhile
            pass
        else:
            own += [key.rpartition("/")[2] for kind, op, key in deed.names if (kind, op) == ("message", "insert")]
            deed.ended, deed.is_committed = time.monotonic(), True
        written.append(deed)


@pytest.fixture
def small_feeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "KEPT_CHANGES", 20)


@given(
    scripts=st.lists(st.lists(st.sampled_from(DEEDS), min_size=2, max_size=8), min_size=2, max_size=4),
    prunes=st.integers(min_value=0, max_value=4),
)
@settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_feed_has_no_gap_and_the_order_of_commits(
    small_feeds: None, make_instance: Callable[..., AgentInstance], scripts: list[list[str]], prunes: int
) -> None:
    owner = User.objects.create_user(new_id("u"))
    talks = [make_instance(owner), make_instance(owner)]
    follower = Follower(owner.pk, [str(talk.session_id) for talk in talks])
    written: list[list[Deed]] = [[] for _ in scripts]

    ended: list[int] = []

    def follow() -> None:
        follower.open()
        is_over = False
        while not (follower.step() and is_over):
            is_over = is_over or len(ended) == len(scripts)

    def work(at: int) -> None:
        try:
            write(talks[at % 2], scripts[at], written[at])
        finally:
            ended.append(at)

    def prune() -> None:
        for _ in range(prunes):
            prune_feeds()

    writers = [partial(work, at) for at in range(len(scripts))]
    assert together(follow, prune, *writers) == []
    _check(follower, [deed for deeds in written for deed in deeds])
    assert follower.state() == _stored(follower.sessions)


def _stored(sessions: list[str]) -> set[str]:
    rows = Message.objects.filter(session_id__in=sessions)
    return {f"{session}/{key}" for session, key in rows.values_list("session_id", "message_id")}


def _check(follower: Follower, deeds: list[Deed]) -> None:
    """All that committed after the reader had opened is there, what was taken back is not, in the order of commits."""
    places: dict[tuple[str, str, str], list[int]] = {}
    for change in follower.found:
        places.setdefault((change.type, change.op, change.key), []).append(change.seq)
    for deed in deeds:
        for name in deed.names:
            if not deed.is_committed:
                assert name not in places
            elif deed.began > follower.opened_at:
                assert name in places
    unique = [deed for deed in deeds if deed.is_committed and deed.names and deed.names[0][0] == "message"]
    ordered = [(deed, places[deed.names[0]][0]) for deed in unique if deed.names[0] in places]
    for one, first in ordered:
        for other, second in ordered:
            if one.ended < other.began:
                assert first < second, "who committed first has the lower number"


@pytest.mark.long
def test_writers_who_take_several_conversations_in_any_order_do_not_wait_in_a_circle(
    make_instance: Callable[..., AgentInstance],
) -> None:
    owner = User.objects.create_user(new_id("u"))
    talks = [make_instance(owner).pk for _ in range(3)]
    start, rounds = open_feed(owner.pk), 30
    orders = [[0, 1, 2], [1, 2, 0], [2, 1, 0], [0, 2, 1]]

    def work(order: list[int]) -> None:
        for _ in range(rounds):
            with transaction.atomic():
                for at in order:
                    AgentRun.objects.create(parent_id=talks[at], owner=owner, run_id=new_id("r"), agent="assistant")

    assert together(*(lambda order=order: work(order) for order in orders)) == []
    seqs = list(FeedChange.objects.filter(feed=owner.pk).order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(start + 1, FeedHead.objects.get(pk=owner.pk).seq + 1))
    assert FeedChange.objects.filter(feed=owner.pk, type="run").count() == rounds * 3 * len(orders)


def test_who_opens_waits_for_commits_that_have_looked_for_an_open_feed(
    make_instance: Callable[..., AgentInstance],
) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer")
    owner = User.objects.create_user(new_id("u"))
    talk = make_instance(owner)
    has_looked = threading.Event()

    def work() -> None:
        with transaction.atomic():
            append_messages(str(talk.session_id), [text_message("user", "hi", "m")])
            with connection.cursor() as cursor:
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # as at the commit, which takes a moment
            has_looked.set()
            time.sleep(0.3)  # that moment: one who does not wait has looked by then

    def look() -> None:
        assert has_looked.wait(10)
        follower = Follower(owner.pk, [str(talk.session_id)])
        follower.open()
        assert follower.looked_at == {f"{talk.session_id}/m"}

    assert together(work, look) == []
