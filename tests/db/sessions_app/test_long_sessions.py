"""What people wait for costs what is shown, not what is stored: a long conversation, and a short one beside it.

The short one is looked at twice, before and after the other was stored: reading all there is costs both the same.
"""

from collections.abc import Callable

import pytest
from django.db import transaction
from django.utils import timezone

from bench.seed import reset_sequence
from sessions_app.compactions.services import add_compaction
from sessions_app.core.messages.shapes import Content
from sessions_app.messages import selectors, services
from sessions_app.models import Message, Session
from sessions_app.testing import text_message
from tests.db.costs import cost, take_statistics

SHORT, LONG = 300, 20_000
PAGE = 20

Step = Callable[[str, str, int], object]


def fill(name: str, count: int) -> str:
    """Store a conversation with a second answer to every tenth message. Returns its id."""
    session = services.create_session(name=name)
    last = Message.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    rows = [_row(session, last + 1 + index, index, last + index if index else None, name) for index in range(count)]
    rows += [_row(session, row.pk + count, row.depth, row.parent_id, name, "b") for row in rows[9::10]]
    Message.objects.bulk_create(rows, batch_size=2_000)
    Session.objects.filter(pk=session.pk).update(active_leaf_id=last + count)
    reset_sequence(Message)
    return session.pk


def _row(session: Session, pk: int, depth: int, parent_id: int | None, name: str, version: str = "") -> Message:
    message_id = f"{name}-{depth}{version}"
    content: Content = {"parts": [{"type": "text", "text": message_id}]}
    return Message(
        pk=pk,
        session=session,
        message_id=message_id,
        parent_id=parent_id,
        depth=depth,
        role=("user", "assistant")[depth % 2],
        content=content,
        byte_size=50,
        placed_at=timezone.now(),
    )


def _ids(name: str, count: int) -> list[str]:
    return [f"{name}-{index}" for index in range(count - PAGE, count)]


STEPS: dict[str, Step] = {
    "newest page": lambda session, name, count: selectors.path_page(session, limit=PAGE),
    "page before": lambda session, name, count: selectors.path_page(session, before=f"{name}-{count // 2}", limit=PAGE),
    "page around": lambda session, name, count: selectors.page_around(
        session, f"{name}-{count - PAGE}", above=5, below=5
    ),
    "window": lambda session, name, count: selectors.window(session, max_messages=PAGE),
    "for the model": lambda session, name, count: selectors.model_history(session, max_messages=PAGE),
    "a branch for the model": lambda session, name, count: selectors.model_history(
        session, leaf=f"{name}-{count - 1}b", max_messages=PAGE
    ),
    "find": lambda session, name, count: selectors.find_messages(session, [*_ids(name, count), "unknown"]),
    "siblings": lambda session, name, count: selectors.siblings(session, _ids(name, count)),
    "branches": lambda session, name, count: selectors.branches(session, f"{name}-{count - 2}"),
    "answered": lambda session, name, count: selectors.answered(session, _ids(name, count)),
    "newest leaf": lambda session, name, count: selectors.newest_leaf(session, f"{name}-{count - PAGE}"),
    "is on the path": lambda session, name, count: selectors.is_on_path(session, f"{name}-{count - PAGE}"),
    "queue": lambda session, name, count: services.queue_messages(session, [text_message("user", "more", "more")]),
    "place": lambda session, name, count: services.place_messages(session, ["more"], after=services.Leaf.ACTIVE),
    "answer": lambda session, name, count: services.put_assistant(
        session, text_message("assistant", "well", "well"), after="more"
    ),
    "select": lambda session, name, count: services.select_leaf(session, f"{name}-{count - 1}"),
    "fork": lambda session, name, count: services.fork_session(session, f"{name}-{count - 3}"),
    "summary": lambda session, name, count: add_compaction(
        session, first_id=f"{name}-{count - 40}", last_id=f"{name}-{count - PAGE}", summary="so far"
    ),
    "for the model, beyond the summary": lambda session, name, count: selectors.model_history(session, max_messages=40),
    "delete the newest": lambda session, name, count: services.delete_message(session, f"{name}-{count - 1}"),
}


def _costs(session_id: str, name: str, count: int) -> dict[str, int]:
    """What each step reads; nothing of it stays."""
    found = {}
    with transaction.atomic():
        for step, run in STEPS.items():
            with transaction.atomic(), cost() as read:
                run(session_id, name, count)
                found[step] = read()
        transaction.set_rollback(True)
    return found


@pytest.mark.long
@pytest.mark.django_db
def test_a_page_costs_the_page_whatever_is_stored() -> None:
    short = fill("short", SHORT)
    take_statistics()
    alone = _costs(short, "short", SHORT)
    long = fill("long", LONG)
    take_statistics()
    beside, of_long = _costs(short, "short", SHORT), _costs(long, "long", LONG)
    slow = {
        step: (few, beside[step], of_long[step])
        for step, few in alone.items()
        if max(beside[step], of_long[step]) > 2 * few + 100
    }
    assert slow == {}
