"""Which walls may be missing, and where an operator reads that one is."""

from pathlib import Path
from typing import Any

import pytest
from celery import signals

from tests.fewer_walls import without_namespaces
from tools_app.sandbox import starting
from tools_app.sandbox.report import sandbox_report, standing_walls
from tools_app.sandbox.walls import Wall, candidates, is_alone, is_root, may_lack

ALL = frozenset(Wall)


@pytest.mark.parametrize(
    ("words", "as_root", "as_user"),
    [
        ("", {Wall.NETWORK}, ALL),
        ("none", set(), set()),
        ("user", {Wall.USER}, {Wall.USER}),
        (" user,network , rights", ALL, ALL),
    ],
)
def test_the_setting_says_what_may_be_missing(words: str, as_root: set[Wall], as_user: set[Wall]) -> None:
    assert may_lack(words, root=True) == as_root
    assert may_lack(words, root=False) == as_user


@pytest.mark.parametrize("words", ["users", "user network", "none, user", "all"])
def test_other_words_are_refused(words: str) -> None:
    with pytest.raises(ValueError, match="is not a valid Wall"):
        may_lack(words, root=True)


def test_some_way_can_be_tried_by_default() -> None:
    for root in (True, False):
        allowed = may_lack("", root=root)
        assert any(walls.lacks <= allowed for walls in candidates(root=root))


@pytest.mark.parametrize(
    ("uid_map", "expected"),
    [
        ("         0          0 4294967295\n", False),  # the machine
        ("         0       1000          1\n", True),  # `unshare --map-root-user` of a user
        ("         0          0          1\n", False),  # the same of root
        ("         0       1000          1\n         1     100000      65536\n", False),  # rootless podman
        ("         0     100000      65536\n", False),
        ("", False),
    ],
)
def test_a_user_alone_in_a_namespace_is_not_root(uid_map: str, expected: bool) -> None:
    assert is_alone(uid_map) is expected


async def test_a_wall_that_is_missing_is_in_the_report(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Any
) -> None:
    without_namespaces(monkeypatch, tmp_path)
    [javascript, *_] = await sandbox_report()
    assert (javascript.is_available, javascript.is_weak) == (True, True)
    assert "runs without a network namespace (Deno alone" in javascript.reason
    assert "THINK_SANDBOX_MAY_LACK" in javascript.reason
    settings.THINK_SANDBOX_MAY_LACK = "user"
    [javascript] = await sandbox_report()
    assert (javascript.is_available, "no network" in javascript.reason) == (False, True)


async def test_what_only_root_can_have_is_not_missed_by_others() -> None:
    found = await standing_walls()
    assert is_root() or Wall.USER not in found.lacks


def test_the_start_of_a_worker_says_which_wall_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    without_namespaces(monkeypatch, tmp_path)
    monkeypatch.setattr(starting, "_found", [])
    starting.look_soon().join()
    found = starting.found_walls()
    assert found is not None
    assert found.lacks == {Wall.NETWORK}
    assert "sandbox: Code of models runs without a network namespace" in caplog.text
    assert any("think_sandbox_ready" in str(key) for key, _ in signals.worker_ready.receivers)
