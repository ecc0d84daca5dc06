"""Each setting, command and error code is documented; links between the pages lead somewhere."""

import os
import re
import subprocess
import sys
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from tests.house.repository import ROOT, committed
from thinkproject import api_types
from thinkproject.config.app_settings import documented
from thinkproject.kernel.conf import Setting, registry
from thinkproject.kernel.removed_settings import REMOVED
from thinkproject.reference import PAGES, is_current

_LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:|#)([^)#\s]+)")
_SETTING = re.compile(r"\bTHINK_[A-Z0-9_]+")
_NAME = re.compile(r"\b[A-Z][A-Z0-9_]+")
_WHEN = re.compile(r"(Add|Change|Keep|Lower|Raise|Set|Switch) .*\.$")
DOCUMENTS = (".md", ".yml", ".conf", "Dockerfile", "Procfile", "Makefile")


@pytest.mark.parametrize("page", PAGES)
def test_the_reference_is_in_step_with_the_code(page: str) -> None:
    assert is_current(page), f"docs/reference/{page}.md is out of step: `make fix` writes it"


def test_the_types_of_the_page_are_in_step_with_the_api() -> None:
    assert api_types.is_current(), "openapi.d.ts is out of step: `make fix` writes it"


def test_every_setting_says_what_it_is_and_when_to_change_it() -> None:
    told = {name: doc.rpartition(". ") for name, doc in documented().items() if not name.endswith("_FILE")}
    assert [name for name, (what, _, when) in told.items() if len(what) < 5 or not _WHEN.match(when)] == []


def limits() -> list[Setting[Any]]:
    """Settings that are objects of limits."""
    return [setting for setting in registry.values() if is_dataclass(setting.default)]


def test_every_setting_is_named_by_a_test() -> None:
    tests = [path for path in committed() if path.startswith("tests/") and not path.startswith("tests/house/")]
    named = {name for path in tests if path.endswith(".py") for name in _NAME.findall((ROOT / path).read_text())}
    assert sorted(documented().keys() - named) == []


def test_what_was_a_setting_is_none_and_its_hint_is_true() -> None:
    assert registry.keys() & REMOVED.keys() == set()
    product = [path for path in committed() if path.endswith(".py") and not path.startswith("tests/")]
    named = {name for path in product for name in _SETTING.findall((ROOT / path).read_text(encoding="utf-8"))}
    assert named & REMOVED.keys() == set()
    objects = {setting.name: {field.name for field in fields(setting.default)} for setting in limits()}
    hinted = [re.match(r"Set (\w+)='\{\"(\w+)\"", hint) for hint in REMOVED.values()]
    objects = {name: objects[name] for name in {match[1] for match in hinted if match}}
    assert len(objects) == 3
    assert all(match[2] in objects[match[1]] for match in hinted if match)
    assert sum(map(len, objects.values())) == sum(1 for match in hinted if match)


def test_the_settings_are_few_enough_to_choose_from() -> None:
    assert len(registry) <= 110


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
