"""A page shows the conversation as it was at one moment, whatever is stored between two of its queries."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from chat.models import AgentInstance, Turn
from fibers.core.states import FiberStatus
from fibers.models import Fiber
from sessions_app.core.messages.shapes import Message
from sessions_app.messages.services import delete_messages, place_messages, put_assistant, queue_messages
from tests.db.chat.conftest import ApiClient, make_turn, say, text_message

pytestmark = pytest.mark.django_db(transaction=True)

Change = Callable[[AgentInstance], None]


def accept(instance: AgentInstance) -> None:
    """A question waits below an answer."""
    turn = make_turn(instance, status=FiberStatus.PENDING, assistant_id="a2", started_at=None)
    queue_messages(turn.session_id, [text_message("q2", "user")], turn_id=turn.id)


def begin(instance: AgentInstance) -> None:
    """Its turn starts and says something."""
    turn = Turn.objects.get(instance=instance, assistant_id="a2")
    place_messages(turn.session_id, ["q2"], after="a1")
    Fiber.objects.filter(pk=turn.fiber_id).update(status=FiberStatus.RUNNING)
    put_assistant(turn.session_id, text_message("a2", "assistant"), after="q2", turn_id=turn.id)


def end(instance: AgentInstance) -> None:
    """It has said everything."""
    turn = Turn.objects.get(instance=instance, assistant_id="a2")
    whole: Message = {**text_message("a2", "assistant"), "parts": [{"type": "text", "text": "all of it"}]}
    put_assistant(turn.session_id, whole, after="q2", turn_id=turn.id)
    Fiber.objects.filter(pk=turn.fiber_id).update(status=FiberStatus.COMPLETED, finished_at=turn.accepted_at)
    Turn.objects.filter(pk=turn.pk).update(finished_at=turn.accepted_at)


def answer_at_once(instance: AgentInstance) -> None:
    """A whole turn between two queries."""
    begin(instance)
    end(instance)


def remove(instance: AgentInstance) -> None:
    """The answer that is shown is taken out; the other version stays."""
    delete_messages(instance.session_id or "", ["a1b"])


def prepare(instance: AgentInstance, change: Change) -> None:
    """What was there before the change."""
    say(instance, "q1", "a1")
    if change is remove:
        put_assistant(instance.session_id or "", text_message("a1b", "assistant"), after="q1")
        return
    accept(instance)
    if change is end:
        begin(instance)


class Between:
    """Has something stored, on a connection of its own, before the query with this number."""

    def __init__(self, at: int, change: Callable[[], None]) -> None:
        self.left = at
        self.change = change
        self.errors: list[BaseException] = []

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not self.left:
            thread = threading.Thread(target=self._run)
            thread.start()
            thread.join(20)
            assert not thread.is_alive(), "nobody waits for somebody who reads"
        self.left -= 1
        return execute(sql, params, many, context)

    def _run(self) -> None:
        try:
            with transaction.atomic():
                self.change()
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.errors.append(error)
        finally:
            connection.close()


def read_page(client: ApiClient, instance: AgentInstance, *, by_session: bool) -> dict[str, Any]:
    """What a page says, without ids and times of its own."""
    whose = f"/sessions/{instance.session_id}" if by_session else f"/instances/{instance.id}"
    reply = client.get(f"{whose}/messages")
    assert reply.status_code == 200, reply.content
    page = reply.json()
    items = [(m["id"], m["parts"], m["sibling_ids"], (m["turn"] or {}).get("status")) for m in page["items"]]
    running = (page["running"] or {}).get("status")
    return {"items": items, "queued": [m["id"] for m in page["queued"]], "running": running, "leaf": page["leaf_id"]}


@pytest.mark.long
@pytest.mark.parametrize("by_session", [False, True], ids=["instance", "session"])
@pytest.mark.parametrize("change", [begin, end, answer_at_once, remove], ids=lambda change: change.__name__)
def test_a_page_is_of_one_moment(
    as_alice: ApiClient, alice: User, make_instance: Callable[..., AgentInstance], change: Change, by_session: bool
) -> None:
    read = partial(read_page, as_alice, by_session=by_session)
    instance = make_instance(alice)
    prepare(instance, change)
    before = read(instance)
    change(instance)
    after = read(instance)
    assert before != after
    seen = []
    for at in range(40):
        instance = make_instance(alice)
        prepare(instance, change)
        between = Between(at, partial(change, instance))
        with connection.execute_wrapper(between):
            found = read(instance)
        assert not between.errors
        if between.left >= 0:  # a page has fewer queries
            break
        assert found in (before, after), f"stored before query {at}"
        assert read(instance) == after
        seen.append(found)
    assert len(seen) > 8
    assert before in seen
