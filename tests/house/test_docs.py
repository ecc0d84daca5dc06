"""Each setting, command and error code is documented; links between the pages lead somewhere."""

import os
import re
import subprocess
import sys

import pytest

from tests.house.repository import ROOT, committed
from thinkproject import api_types
from thinkproject.config.app_settings import documented
from thinkproject.kernel.conf import registry
from thinkproject.reference import PAGES, is_current

_LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:|#)([^)#\s]+)")
_SETTING = re.compile(r"\bTHINK_[A-Z0-9_]+")
DOCUMENTS = (".md", ".yml", ".conf", "Dockerfile", "Procfile", "Makefile")


@pytest.mark.parametrize("page", PAGES)
def test_the_reference_is_in_step_with_the_code(page: str) -> None:
    assert is_current(page), f"docs/reference/{page}.md is out of step: `make fix` writes it"


def test_the_types_of_the_page_are_in_step_with_the_api() -> None:
    assert api_types.is_current(), "openapi.d.ts is out of step: `make fix` writes it"


def test_every_setting_has_a_description() -> None:
    assert [name for name, doc in documented().items() if len(doc) < 10] == []


def test_every_setting_that_documents_name_can_be_set() -> None:
    """In a process that has loaded its settings and no more, as `make run` has when it checks the environment."""
    loaded = run_alone("print('\\n'.join(documented()))")
    known = set(loaded.stdout.splitlines())
    unknown = [
        f"{path}: {name}"
        for path in committed()
        if path.endswith(DOCUMENTS) and not path.startswith("tests/")
        for name in _SETTING.findall((ROOT / path).read_text(encoding="utf-8"))
        if not (any(each.startswith(name) for each in known) if name.endswith("_") else name in known)
    ]
    assert loaded.returncode == 0, loaded.stderr
    assert unknown == []
    assert len(known) > 100


def test_every_setting_of_an_app_can_come_from_the_environment() -> None:
    values = {name: "7" for name, setting in registry.items() if isinstance(setting.default, int | float | str | list)}
    flags = {name: "true" for name, setting in registry.items() if isinstance(setting.default, bool)}
    names = ", ".join(repr(name) for name in registry if name in values or name in flags)
    code = f"print([name for name in ({names}) if not hasattr(thinkproject.settings, name)])"
    loaded = run_alone(code, {**values, **flags})
    assert loaded.stdout == "[]\n", loaded.stderr


def run_alone(code: str, more: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    """Run code in a process that has loaded its settings. Those of this process's environment are not in it."""
    head = "import thinkproject.settings; from thinkproject.config.app_settings import documented"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("THINK_")} | (more or {})
    words = [sys.executable, "-c", f"{head}; {code}"]
    return subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


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
