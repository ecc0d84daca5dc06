"""Conversations with branches, stored beside the product. Runs within it, called by a `Hand`."""

import json
from typing import Any

from django.db import connection
from django.db.models import Model

from bench.seed import reset_sequence
from chat.models import AgentInstance
from sessions_app.core.messages import shapes
from sessions_app.core.search.words import indexed_words
from sessions_app.messages.services import append_messages, create_session
from sessions_app.models import Message, MessageWords, Session


def branch(instance_id: str, parent_id: str, messages: list[shapes.Message]) -> None:
    """Store another path below a message; what is shown stays."""
    session = AgentInstance.objects.get(pk=instance_id).session
    assert session is not None
    append_messages(session.pk, messages, after=parent_id, shows=False)


def seed_large(job: dict[str, Any]) -> str:
    """Store a conversation with a very long path and branches of two messages all along it; returns its id.

    Written by the database itself, as services would leave it and as the index would have it: 100,000 messages in a few
    seconds. One message in a hundred of the path tells of marmalade, and every branch of zucchini.
    """
    count, branches = job["count"], job["branches"]
    instance = AgentInstance(owner_id=job["user"], agent="assistant", name=job["title"], title=job["title"])
    session = create_session(owner_id=job["user"], scope=instance.id)
    instance.session = session
    instance.save(force_insert=True)
    append_messages(session.pk, [{"id": "p0", "role": "user", "parts": [{"type": "text", "text": PLAIN}]}])
    root = Message.objects.get(session=session, message_id="p0")
    _copy(
        Message,
        root.pk,
        count - 1,
        {
            "id": f"{root.pk} + n",
            "message_id": "'p' || n",
            "parent_id": f"{root.pk} + n - 1",
            "depth": "n",
            "role": "CASE n % 2 WHEN 1 THEN 'assistant' ELSE 'user' END",
            "content": f"CASE n % 100 WHEN 50 THEN '{_content(RARE)}' ELSE '{_content(PLAIN)}' END",
        },
    )
    rare, plain = indexed_words(RARE), indexed_words(PLAIN)
    words = {"id": f"{root.pk} + n", "words": f"CASE n % 100 WHEN 50 THEN '{rare}' ELSE '{plain}' END"}
    _copy(MessageWords, root.pk, count - 1, words)
    Session.objects.filter(pk=session.pk).update(active_leaf_id=root.pk + count - 1)
    reset_sequence(Message)
    for branch in range(branches):
        below = branch * (count // branches) + 2
        version = [
            text_message(f"b{branch}", "assistant", f"Version {branch} tells of zucchini."),
            text_message(f"c{branch}", "user", "The end."),
        ]
        append_messages(session.pk, version, after=f"p{below}", shows=False)
    return str(instance.id)


PLAIN = "A message of an ordinary kind, like many others in a conversation that has gone on for years."
RARE = "A message that tells of marmalade, as one in a hundred does."


def text_message(message_id: str, role: str, text: str) -> shapes.Message:
    """A message of one text."""
    return {"id": message_id, "role": role, "parts": [{"type": "text", "text": text}]}


def _content(text: str) -> str:
    return json.dumps({"parts": [{"type": "text", "text": text}]})


def _copy(model: type[Model], row_id: int, count: int, changed: dict[str, str]) -> None:
    """Copy a row so many times in one statement; `changed` gives columns that differ, in SQL over a number `n`."""
    table = model._meta.db_table
    columns = [str(field.column) for field in model._meta.concrete_fields]
    values = ", ".join(changed.get(column, f"source.{column}") for column in columns)
    with connection.cursor() as cursor:
        cursor.execute(  # every part is a constant of this module or a number
            f"INSERT INTO {table} ({', '.join(columns)}) "
            f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count}) "
            f"SELECT {values} FROM numbers, {table} source WHERE source.id = {row_id} ORDER BY n"
        )
