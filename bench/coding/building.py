"""Tasks to add something, to change the form of code that works, and to answer a question about it."""
# ruff: noqa: E501 - the lines are those of the repositories

from typing import Final

from bench.coding.task import Task, call, edit

RUN: Final = call("run_command", command="python3 -m unittest -q")
_LOGS: Final = "\n".join(
    f"2026-04-{day:02} {hour:02}:00 {'ERROR' if (day * hour) % 7 == 3 or (day == 9 and hour % 3 == 2) else 'INFO'} worker-{hour % 3} job {day * 100 + hour}"
    for day in range(1, 15)
    for hour in range(8, 18)
)

PARSE: Final = r'''
def parse(text):
    """The settings that `dump` wrote. Errors: ValueError with the number of the line."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, sign, shown = line.partition(" = ")
        if not sign:
            raise ValueError(f"line {number} is no setting")
        if shown in {"true", "false"}:
            found[name] = shown == "true"
        elif shown.startswith('"'):
            found[name] = re.sub(r"\\(.)", r"\1", shown[1:-1])
        else:
            found[name] = int(shown)
    return found
'''

BUILDING: Final = (
    Task(
        name="an option of a command",
        kind="feature",
        prompt='Add an option --json to wc.py that prints {"lines": …, "words": …, "characters": …} on one line instead of the '
        "table. Without the option nothing changes.",
        files={
            "wc.py": '''"""Count lines, words and characters of the standard input."""

import argparse
import sys


def count(text):
    return {"lines": text.count("\\n"), "words": len(text.split()), "characters": len(text)}


def main(arguments=None):
    parser = argparse.ArgumentParser()
    parser.parse_args(arguments)
    for name, number in count(sys.stdin.read()).items():
        print(f"{name:>12} {number}")


if __name__ == "__main__":
    main()
''',
        },
        check="""import json, subprocess, sys
def run(*words):
    return subprocess.run([sys.executable, "wc.py", *words], input="a b\\nc\\n", capture_output=True, text=True, check=True).stdout
assert run() == "       lines 2\\n       words 3\\n  characters 6\\n"
out = run("--json")
assert out.count("\\n") == 1
assert json.loads(out) == {"lines": 2, "words": 3, "characters": 6}
""",
        solution=edit("/wc.py", "import argparse\n", "import argparse\nimport json\n")
        + edit(
            "/wc.py",
            "    parser.parse_args(arguments)\n",
            '    parser.add_argument("--json", action="store_true")\n    options = parser.parse_args(arguments)\n',
        )
        + edit(
            "/wc.py",
            "    for name, number in count(sys.stdin.read()).items():",
            "    found = count(sys.stdin.read())\n    if options.json:\n        print(json.dumps(found))\n        return\n    for name, number in found.items():",
        )
        + "say: Added.",
    ),
    Task(
        name="a cache that forgets",
        kind="feature",
        prompt="Give Cache in cache.py a limit: Cache(limit=3) keeps the three entries that were read or written last and forgets "
        "the others. Without a limit it keeps all.",
        files={
            "cache.py": '''"""A cache in memory."""


class Cache:
    def __init__(self):
        self._entries = {}

    def get(self, key, default=None):
        return self._entries.get(key, default)

    def set(self, key, value):
        self._entries[key] = value

    def __len__(self):
        return len(self._entries)
''',
            "test_cache.py": """import unittest

from cache import Cache


class CacheTest(unittest.TestCase):
    def test_it_keeps(self):
        cache = Cache()
        cache.set("a", 1)
        self.assertEqual(cache.get("a"), 1)
""",
        },
        check="""from cache import Cache
free = Cache()
for n in range(1000):
    free.set(n, n)
assert len(free) == 1000
cache = Cache(limit=3)
for key in "abc":
    cache.set(key, key)
assert cache.get("a") == "a"
cache.set("d", "d")
assert [cache.get(key, "-") for key in "abcd"] == ["a", "-", "c", "d"]
cache.set("a", 2)
cache.set("e", "e")
assert (cache.get("a"), cache.get("c", "-"), len(cache)) == (2, "-", 3)
cache.get("absent")
assert len(cache) == 3
""",
        solution=edit(
            "/cache.py",
            "    def __init__(self):\n",
            "    def __init__(self, limit=None):\n        self._limit = limit\n",
        )
        + edit(
            "/cache.py",
            "        return self._entries.get(key, default)",
            "        if key not in self._entries:\n            return default\n        self._entries[key] = self._entries.pop(key)\n        return self._entries[key]",
        )
        + edit(
            "/cache.py",
            "        self._entries[key] = value",
            "        self._entries.pop(key, None)\n        self._entries[key] = value\n"
            "        if self._limit is not None and len(self._entries) > self._limit:\n            del self._entries[next(iter(self._entries))]",
        )
        + RUN
        + "say: The entry that was used longest ago goes first.",
    ),
    Task(
        name="a format that is read back",
        kind="feature",
        prompt="settings_file.py writes settings as lines `name = value`. Add `parse(text)`, which gives back the dictionary that "
        "`dump` was given, for values that are texts, whole numbers, true and false. Blank lines and lines that begin with # are "
        "passed over; any other line without = is a ValueError that names its number.",
        files={
            "settings_file.py": '''"""Settings as text."""


def dump(settings):
    """Texts stand in double quotes, with \\\\ before a quote or a backslash."""
    lines = []
    for name, value in settings.items():
        if value is True or value is False:
            shown = str(value).lower()
        elif isinstance(value, int):
            shown = str(value)
        else:
            shown = '"' + value.replace("\\\\", "\\\\\\\\").replace('"', '\\\\"') + '"'
        lines.append(f"{name} = {shown}")
    return "\\n".join(lines) + "\\n"
''',
        },
        check="""from settings_file import dump, parse
given = {"a": "x", "b": 'say "hi" \\\\ bye', "c": 12, "d": -3, "e": True, "f": False, "g": "", "h": "= #", "i": "true", "j": "7"}
found = parse(dump(given))
assert found == given, found
assert [type(each) for each in found.values()] == [type(each) for each in given.values()]
assert parse("\\n# note\\nx = 1\\n") == {"x": 1}
try:
    parse("x = 1\\n\\noops\\n")
except ValueError as error:
    assert "3" in str(error), error
else:
    raise AssertionError
""",
        solution=edit(
            "/settings_file.py", '"""Settings as text."""\n', '"""Settings as text."""\n\nimport re\n\n' + PARSE
        )
        + "say: Added.",
    ),
    Task(
        name="three times the same",
        kind="refactoring",
        prompt="report.py prints three tables with nearly the same code. Give it one function `table(title, rows)` that all three use. "
        "The output stays the same, byte for byte, and the names of the three functions stay.",
        files={
            "report.py": '''"""A report about a library."""


def books(rows):
    lines = ["Books", "-----"]
    for name, count in rows:
        lines.append(f"{name:<10}{count:>5}")
    lines.append(f"{'total':<10}{sum(count for _, count in rows):>5}")
    return "\\n".join(lines)


def readers(rows):
    lines = ["Readers", "-------"]
    for name, count in rows:
        lines.append(f"{name:<10}{count:>5}")
    lines.append(f"{'total':<10}{sum(count for _, count in rows):>5}")
    return "\\n".join(lines)


def loans(rows):
    lines = ["Loans", "-----"]
    for name, count in rows:
        lines.append(f"{name:<10}{count:>5}")
    lines.append(f"{'total':<10}{sum(count for _, count in rows):>5}")
    return "\\n".join(lines)
''',
        },
        check="""import ast
import report
rows = [("north", 3), ("south", 14)]
tail = "\\nnorth         3\\nsouth        14\\ntotal        17"
assert report.books(rows) == "Books\\n-----" + tail
assert report.readers(rows) == "Readers\\n-------" + tail
assert report.loans(rows) == "Loans\\n-----" + tail
assert report.table("Any", rows) == "Any\\n---" + tail
source = open("report.py").read()
assert source.count("total") == 1, "the code is still there several times"
functions = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
for name in ("books", "readers", "loans"):
    assert any(isinstance(node, ast.Call) and getattr(node.func, "id", "") == "table" for node in ast.walk(functions[name])), name
""",
        solution=call(
            "write",
            path="/report.py",
            content='''"""A report about a library."""


def books(rows):
    return table("Books", rows)


def readers(rows):
    return table("Readers", rows)


def loans(rows):
    return table("Loans", rows)


def table(title, rows):
    """A title, a line for each row, and their sum."""
    lines = [title, "-" * len(title)]
    for name, count in [*rows, ("total", sum(count for _, count in rows))]:
        lines.append(f"{name:<10}{count:>5}")
    return "\\n".join(lines)
''',
        )
        + "say: One function makes all three.",
    ),
    Task(
        name="a new name everywhere",
        kind="refactoring",
        prompt="Rename the function `get_data` of store.py to `load_orders`, in all files, with its tests. Other functions that are called "
        "get_data keep their name. Nothing else changes.",
        files={
            "store.py": '''"""Orders."""


def get_data():
    return [{"id": 1, "sum": 20}, {"id": 2, "sum": 5}]
''',
            "weather.py": '''"""Temperatures."""


def get_data():
    return {"oslo": 4}
''',
            "totals.py": '''"""Sums of orders."""

import store
import weather
from store import get_data as orders


def total():
    return sum(each["sum"] for each in store.get_data())


def count():
    return len(orders())


def is_cold():
    return weather.get_data()["oslo"] < 5
''',
            "test_totals.py": """import unittest

from store import get_data
from totals import count, total


class TotalsTest(unittest.TestCase):
    def test_sums(self):
        self.assertEqual((total(), count(), len(get_data())), (25, 2, 2))
""",
        },
        check="""import store, totals, weather
assert not hasattr(store, "get_data")
assert len(store.load_orders()) == 2
assert weather.get_data() == {"oslo": 4}
assert (totals.total(), totals.count(), totals.is_cold()) == (25, 2, True)
import unittest
result = unittest.TextTestRunner().run(unittest.defaultTestLoader.discover("."))
assert result.wasSuccessful() and result.testsRun == 1
assert "get_data" not in open("test_totals.py").read()
""",
        solution=edit("/store.py", "get_data", "load_orders")
        + edit("/totals.py", "store import get_data", "store import load_orders")
        + edit("/totals.py", "store.get_data", "store.load_orders")
        + call("run_command", command="sed -i s/get_data/load_orders/g test_totals.py; python3 -m unittest -q")
        + "say: Renamed.",
    ),
    Task(
        name="who fails most",
        kind="question",
        prompt="In logs/april.txt, which worker has the most lines with ERROR, and how many are they? Change no file.",
        files={"logs/april.txt": f"{_LOGS}\n", "README": "Logs of the workers.\n"},
        answer=(r"worker-2", r"\b10\b"),
        solution=call("run_command", command="grep ERROR logs/april.txt | cut -d' ' -f4 | sort | uniq -c")
        + "say: It is worker-2, with 10 lines.",
    ),
    Task(
        name="where a value comes from",
        kind="question",
        prompt="Which port does app.py listen on if the environment has PORT=9000 and config.ini is as it is here? Answer with the number "
        "and the reason. Change no file.",
        files={
            "app.py": '''"""A server."""

from settings import port

print(f"listening on {port()}")
''',
            "settings.py": '''"""Settings: the file wins over the environment, unless it says otherwise."""

import configparser
import os


def port():
    config = configparser.ConfigParser()
    config.read("config.ini")
    if config.getboolean("server", "environment_wins", fallback=False):
        return int(os.environ.get("PORT", config["server"]["port"]))
    return int(config["server"].get("port", os.environ.get("PORT", "80"))) + config["server"].getint("offset", 0)
''',
            "config.ini": "[server]\nport = 8000\noffset = 10\nenvironment_wins = no\n",
        },
        answer=(r"\b8010\b",),
        solution=call("read", path="/settings.py")
        + call("run_command", command="PORT=9000 python3 app.py")
        + "say: 8010: the file wins over the environment, and its offset of 10 is added to 8000.",
    ),
)
