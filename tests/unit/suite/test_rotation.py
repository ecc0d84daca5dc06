"""A plain run takes cheap tests always, costly ones in turns; ten runs take each of the others once."""

from pathlib import Path

import pytest

from tests.suite import rotation
from thinkproject.run.suite_runs import next_tenth

NAMES = [f"tests/db/test_{number}.py::test_it[{number}]" for number in range(500)]
ROOT = Path(__file__).resolve().parents[3]
EACH = [str(number) for number in range(rotation.TENTHS)]


def taken(marks: set[str], *, database: str = "sqlite", tenth: str = "none") -> set[str]:
    return {name for name in NAMES if rotation.is_taken(name, marks, database=database, tenth=tenth)}


def test_a_run_without_a_tenth_takes_what_is_of_every_change() -> None:
    assert taken(set()) == set(NAMES)
    assert taken({"long"}) == set()
    assert taken({"own_sql", "database"}, database="postgres") == set(NAMES)
    assert taken({"database"}, database="postgres") == set()
    assert taken({"own_sql", "database", "long"}, database="postgres") == set()


@pytest.mark.parametrize(
    ("marks", "database"),
    [({"long"}, "sqlite"), ({"database"}, "postgres"), ({"database", "own_sql", "long"}, "postgres")],
)
def test_ten_runs_take_each_of_the_others_once(marks: set[str], database: str) -> None:
    tenths = [taken(marks, database=database, tenth=tenth) for tenth in EACH]
    assert sum(map(len, tenths)) == len(NAMES)
    assert set().union(*tenths) == set(NAMES)
    assert max(map(len, tenths)) < 2 * len(NAMES) / rotation.TENTHS


@pytest.mark.parametrize(
    "modules", [rotation.costly_modules(), rotation.starting_modules()], ids=["costly", "starting"]
)
def test_costly_modules_take_turns(modules: list[str]) -> None:
    names = [f"{module}::test_it" for module in modules]

    def turn(tenth: str) -> set[str]:
        return {name for name in names if rotation.is_taken(name, {"database"}, database="sqlite", tenth=tenth)}

    tenths = [turn(tenth) for tenth in EACH]
    assert sum(map(len, tenths)) == len(names)
    assert set().union(*tenths) == turn(rotation.WHOLE) == set(names)
    assert turn("none") == set()
    assert max(map(len, tenths)) <= min(map(len, tenths)) + 2
    assert tenths == [{name for name in names if rotation.is_read(name[:-9], tenth=tenth)} for tenth in EACH]
    assert turn(rotation.WHOLE) == {name for name in names if rotation.is_read(name[:-9], tenth=rotation.WHOLE)}
    long = [
        {name for name in names if rotation.is_taken(name, {"long"}, database="sqlite", tenth=each)} for each in EACH
    ]
    assert long == tenths, "what is left out of a module comes with the rest of it"


def test_the_turns_cost_about_the_same() -> None:
    seconds = dict.fromkeys(range(rotation.TENTHS), 0)
    for line in rotation.COSTLY.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            cost, module = line.split()
            assert (ROOT / module).is_file(), f"there is no {module}"
            seconds[rotation.TENTH_OF[module]] += int(cost)
    assert max(seconds.values()) < 1.5 * min(seconds.values())


def test_the_first_answer_of_a_product_is_in_every_run() -> None:
    assert rotation.is_taken("tests/acceptance/wire/test_turns.py::test_it", {"smoke"}, database="sqlite", tenth="none")


def test_a_whole_run_leaves_out_what_is_long() -> None:
    assert taken({"long"}, tenth=rotation.WHOLE) == set()
    assert taken({"own_sql", "database"}, database="postgres", tenth=rotation.WHOLE) == set(NAMES)


def test_what_does_not_depend_on_the_database_is_not_repeated_on_postgresql() -> None:
    assert all(taken({"long"}, database="postgres", tenth=tenth) == set() for tenth in EACH)


def test_a_tenth_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_TENTH", "10")
    with pytest.raises(pytest.UsageError, match="TEST_TENTH is '10'"):
        rotation.chosen()


def test_ten_runs_of_a_checkout_have_ten_tenths(tmp_path: Path) -> None:
    runs = tmp_path / "cache" / "runs.json"
    assert sorted(next_tenth(runs) for _ in EACH) == [int(tenth) for tenth in EACH]
    runs.write_text("not JSON", encoding="utf-8")
    assert 0 <= next_tenth(runs) < rotation.TENTHS


def test_what_is_taken_on_postgresql_is_read_and_a_tenth_of_the_rest() -> None:
    modules = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests" / "db").rglob("test_*.py")]
    own = {module for module in modules if module.startswith(rotation.OWN_SQL)}
    turns = []
    for tenth in EACH:
        read = {module for module in modules if rotation.is_read(module, database="postgres", tenth=tenth)}
        for module in modules:
            marks = {"database", "own_sql"} if module in own else {"database"}
            for each in (marks, {*marks, "long"}):
                is_taken = rotation.is_taken(f"{module}::test_it", each, database="postgres", tenth=tenth)
                assert module in read or not is_taken
        turns.append(read)
        assert {module for module in own if module not in rotation.TENTH_OF} <= read
    assert set().union(*turns) == set(modules)
    assert max(map(len, turns)) < len(modules) / 2
