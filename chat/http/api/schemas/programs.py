"""API schemas of programs."""

from datetime import datetime

from ninja import Schema


class ProgramOut(Schema):
    """A grant to a program. `program`: the name that it gives itself, which is not verified."""

    id: str
    program: str
    agent: str
    scopes: list[str]
    created_at: datetime
    used_at: datetime | None
