"""Trees of messages: any of them, and as a session stores it."""

from collections.abc import Iterable

from hypothesis import strategies as st

from sessions_app.messages import services
from sessions_app.testing import text_message

# Trees: each message hangs below an earlier one or is a root.
parents_lists = st.lists(st.integers(min_value=-1, max_value=30), max_size=31).map(
    lambda raw: [None if parent < 0 or index == 0 else parent % index for index, parent in enumerate(raw)]
)
small_trees = parents_lists.map(lambda parents: parents[:12])


def pairs_of(parents: list[int | None]) -> list[tuple[str, str | None]]:
    return [(f"m{index}", None if parent is None else f"m{parent}") for index, parent in enumerate(parents)]


def store_tree(pairs: Iterable[tuple[str, str | None]]) -> str:
    session = services.create_session()
    for number, (name, parent) in enumerate(pairs):
        services.append_messages(
            session.pk, [text_message("user" if number % 3 else "assistant", name, name)], after=parent
        )
    return session.pk
