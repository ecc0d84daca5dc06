"""Each setting, command and error code is documented; links between the pages lead somewhere."""

import re

import pytest

from tests.house.repository import ROOT, committed
from thinkproject import api_types
from thinkproject.config.app_settings import documented
from thinkproject.kernel.conf import registry
from thinkproject.reference import PAGES, is_current

_LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:|#)([^)#\s]+)")
_PYTHON_FILE = re.compile(r"`([\w/-]+\.py)(?:::\w+)?`")
_WRITTEN_BY_USERS = {"agents.py", "tests/test_agents.py"}


@pytest.mark.parametrize("page", PAGES)
def test_the_reference_is_in_step_with_the_code(page: str) -> None:
    assert is_current(page), f"docs/reference/{page}.md is out of step: `make fix` writes it"


def test_the_types_of_the_page_are_in_step_with_the_api() -> None:
    assert api_types.is_current(), "openapi.d.ts is out of step: `make fix` writes it"


def test_every_setting_has_a_description() -> None:
    assert [name for name, doc in documented().items() if len(doc) < 10] == []


def test_every_setting_of_the_apps_has_our_prefix() -> None:
    odd = [name for name in registry if not name.startswith("THINK_") and name not in documented()]
    assert odd == []


def test_links_between_documents_lead_somewhere() -> None:
    broken = []
    for path in committed():
        if path.endswith(".md"):
            for target in _LINK.findall((ROOT / path).read_text(encoding="utf-8")):
                if not ((ROOT / path).parent / target).exists():
                    broken.append(f"{path}: {target}")
    assert not broken, "\n".join(broken)


def test_every_decision_record_has_its_sections() -> None:
    records = [path for path in committed() if re.match(r"docs/adr/\d{4}-", path)]
    assert len(records) >= 12
    for path in records:
        text = (ROOT / path).read_text(encoding="utf-8")
        for section in ("## Context", "## Options", "## Decision", "## Consequence"):
            assert section in text, f"{path} has no {section!r}"


def test_python_files_that_prose_names_exist() -> None:
    """Docstrings and comments name files of their own top folder, or from the root; documents name any."""
    known = committed()
    lost = []
    for path in known:
        if path.endswith((".md", ".py")) and not path.startswith("tests/"):
            top = path.partition("/")[0] + "/" if path.endswith(".py") else ""
            near = [each for each in known if each.startswith(top)]
            for name in _PYTHON_FILE.findall((ROOT / path).read_text(encoding="utf-8")):
                is_there = name in known or any(each.endswith(f"/{name}") for each in near)
                if not is_there and name not in _WRITTEN_BY_USERS:
                    lost.append(f"{path}: {name}")
    assert not lost, "\n".join(lost)
