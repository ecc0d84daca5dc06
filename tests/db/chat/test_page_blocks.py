"""Every block of code of every page for developers is what it is shown as: it runs, or at least it is read."""

import ast
import inspect
import json
import re
import subprocess
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from deno import find_deno_bin
from django.core.management import get_commands

from chat.agent import declared
from tests.db.chat.page_blocks import Anything, Block, blocks, own_names
from tests.house.repository import ROOT

NOT_RUN = {
    "docs/howto/agents-that-talk.md": "has tables of a shop; `turns/test_agent_examples.py` has the same steps",
    "docs/howto/effects.md": "declares effects over a desk's tables; `turns/test_state_examples.py` has the same steps",
    "docs/howto/python-client.md": "connects to a server, as tests of the client do",
    "docs/howto/translate.md": "raises the errors that it is about",
    "docs/howto/sessions.md": "writes; `tests/db/sessions_app/test_manager.py` has the same steps",
}
PYTHON = [list(group) for _, group in groupby(blocks("python"), key=lambda block: block.page)]
SCRIPTS = blocks("javascript", "ts", "tsx")
COMMANDS = blocks("console")


@pytest.mark.parametrize("page", PYTHON, ids=lambda page: page[0].page)
def test_the_python_of_a_page_runs(page: list[Block], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declared, "classes", {})  # a page's agents are served by no other test, and may have its names
    names: dict[str, Any] = {"__name__": "page", "self": Anything()}
    for block in page:
        code = compile(block.code, str(block), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if code.co_flags & inspect.CO_COROUTINE or page[0].page in NOT_RUN:
            continue  # part of a function of the reader's
        names |= own_names(ast.parse(block.code), names, tmp_path)
        exec(code, names)


@pytest.mark.parametrize("block", SCRIPTS, ids=str)
def test_scripts_are_scripts(block: Block) -> None:
    extension = {"javascript": "js"}.get(block.language, block.language)
    read = [find_deno_bin(), "fmt", "--ext", extension, "-"]
    found = subprocess.run(read, input=block.code, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("block", blocks("json"), ids=str)
def test_json_is_json(block: Block) -> None:
    text, decoder = block.code.strip(), json.JSONDecoder()
    while text:  # one value, or several in a row
        _, end = decoder.raw_decode(text)
        text = text[end:].strip()


@pytest.mark.parametrize("block", COMMANDS, ids=str)
def test_commands_exist(block: Block) -> None:
    targets = re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for line in block.code.splitlines():
        for command in re.findall(r"manage\.py ([a-z_]+)", line):
            assert command in get_commands(), line
        for target in re.findall(r"^\$.*\bmake ([a-z-]+)", line.partition(" # ")[0]):
            assert target in targets, line


def test_pages_have_blocks_of_each_kind() -> None:
    assert min(len(PYTHON), len(SCRIPTS), len(COMMANDS)) > 5
