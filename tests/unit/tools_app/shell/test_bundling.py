"""The bundle of just-bash is the pinned one wherever it is made, and nothing else is loaded."""

import json
from pathlib import Path

import pytest

from tools_app.shell import bundling
from tools_app.shell.bundling import BUNDLE, RUNNER, BundleFailed, build, is_current


def test_the_bundle_is_the_pinned_one() -> None:
    assert is_current()
    assert BUNDLE.read_text().startswith(bundling.HEAD)
    assert "Apache License" in (RUNNER / "LICENSE.just-bash").read_text()


def test_every_package_of_the_lock_has_a_hash() -> None:
    packages = json.loads((RUNNER / "deno.lock").read_text())["npm"]
    assert "just-bash@3.4.2" in packages
    assert all(facts["integrity"].startswith("sha512-") for facts in packages.values())


@pytest.mark.long
def test_the_bundle_is_the_same_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = BUNDLE.read_bytes()
    monkeypatch.setattr(bundling, "BUNDLE", tmp_path / "dist" / "just_bash.js")
    assert build().read_bytes() == before


@pytest.mark.long
def test_another_bundle_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pinned").write_text("0" * 64)
    monkeypatch.setattr(bundling, "PINNED", tmp_path / "pinned")
    monkeypatch.setattr(bundling, "BUNDLE", tmp_path / "dist" / "just_bash.js")
    with pytest.raises(BundleFailed):
        build()
    assert not is_current()
