"""Capabilities of a database that effects and other shared work depend on. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """Properties of one database. `confirms`: a committed row is there for every process that asks."""

    confirms: bool
    has_transactions: bool
    locks_rows: bool  # else a writer locks all of it
    reaches_machines: bool  # more than one

    @property
    def lack(self) -> str:
        """The lack that keeps effects from running over it; empty where there is none."""
        if not self.has_transactions:
            return "it has no transactions"
        return "" if self.confirms else "it is in the memory of one process, so no other one sees a committed row"


def capabilities_of(vendor: str, name: str, *, has_transactions: bool) -> Capabilities:
    """Judge a database by its kind and its name (for SQLite a path, or one of its names for memory)."""
    is_sqlite = vendor == "sqlite"
    in_memory = is_sqlite and (":memory:" in name or "mode=memory" in name or not name)
    return Capabilities(
        confirms=not in_memory,
        has_transactions=has_transactions,
        locks_rows=not is_sqlite,
        reaches_machines=not is_sqlite,
    )
