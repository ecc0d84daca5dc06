"""Tasks with a failing test that is to pass."""
# ruff: noqa: E501 - the lines are those of the repositories

from typing import Final

from bench.coding.task import Task, call, edit

RUN: Final = call("run_command", command="python3 -m unittest -q")
PROMPT: Final = (
    "A test of this repository fails. Find out why and mend the code, not the test. Run `python3 -m unittest`."
)

MENDING: Final = (
    Task(
        name="median of an even number",
        kind="failing test",
        prompt=PROMPT,
        files={
            "stats.py": '''"""Figures of lists of numbers."""


def mean(values):
    return sum(values) / len(values)


def median(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2]
''',
            "test_stats.py": """import unittest

from stats import mean, median


class StatsTest(unittest.TestCase):
    def test_mean(self):
        self.assertEqual(mean([1, 2, 6]), 3)

    def test_median(self):
        self.assertEqual(median([3, 1, 2]), 2)
        self.assertEqual(median([4, 1, 3, 2]), 2.5)
""",
        },
        check="""from stats import mean, median
assert mean([1, 2, 6]) == 3
assert median([5]) == 5
assert median([9, 1, 5]) == 5
assert median([10, 2]) == 6
assert median([4, 1, 3, 2, 9, 0]) == 2.5
values = [3, 1, 2]
median(values)
assert values == [3, 1, 2]
""",
        solution=RUN
        + edit(
            "/stats.py",
            "    return ordered[len(ordered) // 2]",
            "    middle = len(ordered) // 2\n    if len(ordered) % 2:\n        return ordered[middle]\n"
            "    return (ordered[middle - 1] + ordered[middle]) / 2",
        )
        + RUN
        + "say: The median of an even number of values is the mean of the two in the middle.",
    ),
    Task(
        name="a default that is shared",
        kind="failing test",
        prompt=PROMPT,
        files={
            "shop/__init__.py": "",
            "shop/basket.py": '''"""What a customer has chosen."""


class Basket:
    def __init__(self, items=[]):
        self.items = items

    def add(self, name, count=1):
        self.items.append((name, count))

    def total_count(self):
        return sum(count for _, count in self.items)
''',
            "tests/__init__.py": "",
            "tests/test_basket.py": """import unittest

from shop.basket import Basket


class BasketTest(unittest.TestCase):
    def test_baskets_are_independent(self):
        first, second = Basket(), Basket()
        first.add("tea", 2)
        self.assertEqual(first.total_count(), 2)
        self.assertEqual(second.total_count(), 0)
""",
        },
        check="""from shop.basket import Basket
first, second = Basket(), Basket()
first.add("tea", 2)
assert (first.total_count(), second.total_count()) == (2, 0)
given = [("pen", 1)]
third = Basket(given)
third.add("ink")
assert third.items == [("pen", 1), ("ink", 1)]
""",
        solution=edit("/shop/basket.py", "items=[]", "items=None")
        + edit("/shop/basket.py", "self.items = items", "self.items = [] if items is None else list(items)")
        + RUN
        + "say: All baskets shared one list, the default of the argument.",
    ),
    Task(
        name="days between dates",
        kind="failing test",
        prompt=PROMPT,
        files={
            "rental.py": '''"""Prices of rented bicycles."""

from datetime import date

PRICES = {"day": 12, "week": 60}


def days(start: date, end: date) -> int:
    """Number of days, the first and the last included."""
    return (end - start).days


def price(start: date, end: date) -> int:
    """The cheapest of weeks and single days."""
    count = days(start, end)
    weeks, rest = divmod(count, 7)
    return weeks * PRICES["week"] + rest * PRICES["day"]
''',
            "test_rental.py": """import unittest
from datetime import date

from rental import days, price


class RentalTest(unittest.TestCase):
    def test_both_days_count(self):
        self.assertEqual(days(date(2026, 3, 1), date(2026, 3, 1)), 1)

    def test_six_days_cost_no_more_than_a_week(self):
        self.assertEqual(price(date(2026, 3, 1), date(2026, 3, 6)), 60)
""",
        },
        check="""from datetime import date, timedelta
from rental import days, price
start = date(2026, 2, 27)
wanted = {1: 12, 4: 48, 5: 60, 6: 60, 7: 60, 8: 72, 12: 120, 13: 120, 14: 120, 15: 132}
for count, cost in wanted.items():
    end = start + timedelta(days=count - 1)
    assert days(start, end) == count, count
    assert price(start, end) == cost, (count, price(start, end))
""",
        solution=RUN
        + edit("/rental.py", "    return (end - start).days", "    return (end - start).days + 1")
        + edit(
            "/rental.py",
            '    return weeks * PRICES["week"] + rest * PRICES["day"]',
            '    return weeks * PRICES["week"] + min(rest * PRICES["day"], PRICES["week"])',
        )
        + RUN
        + "say: The first day was not counted, and five or six days cost more than a week.",
    ),
    Task(
        name="text that is cut within a word",
        kind="failing test",
        prompt=PROMPT,
        files={
            "teaser.py": '''"""Short beginnings of long texts."""


def teaser(text, limit=20):
    """At most `limit` characters, whole words, with an ellipsis where something is left out."""
    if len(text) <= limit:
        return text
    return text[:limit] + "…"
''',
            "test_teaser.py": """import unittest

from teaser import teaser


class TeaserTest(unittest.TestCase):
    def test_short_texts_stay(self):
        self.assertEqual(teaser("short"), "short")

    def test_words_stay_whole(self):
        self.assertEqual(teaser("a walk along the river bank", 12), "a walk…")
""",
        },
        check="""from teaser import teaser
assert teaser("short") == "short"
assert teaser("a walk along the river bank", 12) == "a walk…"
assert teaser("a walk along the river", 13) == "a walk along…"
assert teaser("exactly", 7) == "exactly"
for limit in range(1, 30):
    assert len(teaser("one two three four five six seven", limit)) <= limit, limit
""",
        solution=edit(
            "/teaser.py",
            '    return text[:limit] + "…"',
            '    head = ""\n    for word in text.split():\n        longer = f"{head} {word}".strip()\n'
            "        if len(longer) + 1 > limit:\n            break\n        head = longer\n"
            '    return head + "…"',
        )
        + RUN
        + "say: The ellipsis counts, and a word is left out whole.",
    ),
    Task(
        name="an interrupted save",
        kind="failing test",
        prompt=PROMPT,
        files={
            "notes/__init__.py": "",
            "notes/store.py": '''"""Notes in a JSON file."""

import json


class Store:
    def __init__(self, path):
        self.path = path

    def load(self):
        try:
            with open(self.path) as file:
                return json.load(file)
        except FileNotFoundError:
            return []

    def save(self, notes):
        with open(self.path, "w") as file:
            json.dump(notes, file)
''',
            "tests/__init__.py": "",
            "tests/test_store.py": """import os
import tempfile
import unittest

from notes.store import Store


class StoreTest(unittest.TestCase):
    def test_a_save_that_fails_keeps_the_old_notes(self):
        with tempfile.TemporaryDirectory() as folder:
            store = Store(os.path.join(folder, "notes.json"))
            store.save(["first"])
            with self.assertRaises(TypeError):
                store.save(["second", object()])
            self.assertEqual(store.load(), ["first"])
            self.assertEqual(os.listdir(folder), ["notes.json"])
""",
        },
        check="""import os, tempfile
from notes.store import Store
with tempfile.TemporaryDirectory() as folder:
    store = Store(os.path.join(folder, "n.json"))
    assert store.load() == []
    store.save(["first"])
    try:
        store.save(["second", {"deep": [object()]}])
    except TypeError:
        pass
    else:
        raise AssertionError
    assert store.load() == ["first"]
    store.save(["third"])
    assert store.load() == ["third"]
    assert os.listdir(folder) == ["n.json"]
""",
        solution=RUN
        + edit(
            "/notes/store.py",
            '        with open(self.path, "w") as file:\n            json.dump(notes, file)',
            '        text = json.dumps(notes)\n        with open(self.path, "w") as file:\n            file.write(text)',
        )
        + RUN
        + "say: The text is made before the file is opened.",
    ),
)
