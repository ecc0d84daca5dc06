"""Statements of a turn by what they do, and to which table."""

import re

ASKED, ANSWERED = "the model is asked", "the model has answered"
CONTROL = ("BEGIN", "SAVEPOINT", "RELEASE", "COMMIT")


def kinds(found: list[str]) -> list[str]:
    """Verb and table of each statement, without those that open and close transactions."""
    return [_kind(sql) for sql in found if not sql.startswith(CONTROL)]


def _kind(sql: str) -> str:
    if sql in (ASKED, ANSWERED):
        return sql
    if sql.startswith("WITH RECURSIVE path"):
        return "SELECT message"
    verb = sql.split(" ", 1)[0]
    outer = sql
    while verb == "SELECT" and "(" in outer:  # without what it looks up on the way
        outer = re.sub(r"\([^()]*\)", "", outer)
    table = re.search(r"(?:FROM|INTO|UPDATE) \"?(?:think_[a-z]+_|auth_)([a-z]+)", outer)
    assert table is not None, sql
    return f"{verb} {table.group(1)}"
