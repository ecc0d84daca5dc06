"""The page of published servers is made of what the tests expect of them."""

from pathlib import Path

from tests.mcp.published_servers import ALL, OTHERS, table

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "mcp-servers.md"


def test_the_page_has_the_table_of_the_tests() -> None:
    assert table() == "".join(line for line in PAGE.read_text().splitlines(keepends=True) if line.startswith("|"))


def test_there_are_thirty_and_more() -> None:
    assert len({*OTHERS, *(each.package for each in ALL)}) >= 36
