"""Ways in which a list of items is spoiled."""

from typing import Any


def lose(items: list[Any], at: int) -> None:
    del items[at]


def double(items: list[Any], at: int) -> None:
    items.insert(at, items[at])


def swap(items: list[Any], at: int) -> None:
    items[at], items[at + 1] = items[at + 1], items[at]
