"""The pages in tests/house/parity have every row of the references, and the tests that they name exist."""

import pytest

from tests.house.parity_page import is_test, problems, rows, text_of_pages
from tests.house.parity_rows import folded, kept, rows_of
from tests.house.repository import ROOT

REFERENCE = ROOT.parent / "shared/reference"
"""Where the references lie beside a checkout, if they do."""

A_TEST = "tests/house/test_parity.py::test_the_page_has_every_row_and_what_it_names_exists"
HEAD = "- **Durable work**: fibers.\n\n| row | what | status | where |\n|---|---|---|---|\n"
SHOWN = f"| A1.1 | One class | shown | `chat/think.py`; `{A_TEST}` |"
PLANNED = "| A1.2 | Fibers | planned | Durable work. Named ones exist. |"
GOOD = HEAD + f"{SHOWN}\n{PLANNED}\n| A1.3 | Lists | different | They are not believed. |\n"
KNOWN = ["A1.1", "A1.2", "A1.3"]


def test_the_page_has_every_row_and_what_it_names_exists() -> None:
    found = problems(text_of_pages(), kept())
    assert not found, "\n".join(found)


def test_the_kept_list_of_rows_is_a_list() -> None:
    known = kept()
    assert len(known) == len(set(known)) > 1200
    assert [line.split(" ")[0] for line in folded(known).splitlines()][:2] == ["A1.", "A2."]


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="the references are not beside this checkout")
def test_the_references_have_no_row_that_the_kept_list_lacks() -> None:
    there = rows_of(REFERENCE)
    assert kept() == there, "python -m tests.house.parity_rows ../shared/reference writes the list anew"


def test_a_page_as_it_should_be_has_no_problems() -> None:
    assert problems(GOOD, KNOWN) == []
    assert [row.status for row in rows(GOOD)] == ["shown", "planned", "different"]


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        (GOOD.replace(PLANNED, ""), "A1.2: is not on the page"),
        (f"{GOOD}{SHOWN}\n", "A1.1: is there 2 times"),
        (f"{GOOD}{SHOWN.replace('A1.1', 'A1.99')}\n", "A1.99: no reference has it"),
        (GOOD.replace("| shown |", "| done |"), "A1.1: 'done' is none of shown, different, planned"),
        (GOOD.replace("chat/think.py", "chat/thunk.py"), "A1.1: there is no chat/thunk.py"),
        (GOOD.replace(A_TEST, f"{A_TEST}_not"), f"A1.1: there is no {A_TEST}_not"),
        (GOOD.replace(A_TEST, "tests/house/repository.py::ROOT"), "A1.1: there is no tests/house/repository.py::ROOT"),
        (GOOD.replace(f"`{A_TEST}`", ""), "A1.1: names no test"),
        (GOOD.replace("They are not believed.", "`chat/think.py`"), "A1.3: has no reason"),
        (GOOD.replace("Durable work. Named", "Later. Named"), "A1.2: names no package that is to come"),
        (GOOD.replace("| One class |", "| |"), "A1.1: does not say what it is about"),
        (GOOD.replace("| Lists |", "| Lists | more |"), "not a row: "),
    ],
)
def test_a_page_with_a_mistake_is_found_out(page: str, problem: str) -> None:
    assert [found for found in problems(page, KNOWN) if found.startswith(problem)]


@pytest.mark.parametrize(
    ("test", "is_there"),
    [
        ("tests/unit/tools_app/workspace/test_stores.py::TestFiles::test_an_absent_file_is_none", True),
        ("tests/unit/tools_app/workspace/test_stores.py::TestFiles::test_an_absent_file_is_some", False),
        ("tests/unit/tools_app/workspace/test_stores.py::TestLinks::test_an_absent_file_is_none", False),
        ("tests/unit/tools_app/workspace/test_stores.py::TestNothing::test_an_absent_file_is_none", False),
        ("tests/unit/tools_app/workspace/test_stores.py::test_an_absent_file_is_none", False),
        ("tests/workspace_contract.py::FilesContract::test_an_absent_file_is_none", False),
    ],
)
def test_a_test_of_a_contract_is_found_where_it_runs(test: str, is_there: bool) -> None:
    assert is_test(test) is is_there
