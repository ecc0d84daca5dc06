"""Packages for code: which are refused, and that one in the folder needs no network."""

from pathlib import Path

import pytest

from tests.unit.tools_app.sandbox.conftest import Run
from tools_app.errors import CodeInvalid, SandboxUnavailable
from tools_app.sandbox.packages import bundled, python_folder


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("zod", "latest"),
        ("zod", "^4.1.0"),
        ("zod", "4"),
        ("../zod", "1.0.0"),
        ('zod";evil()', "1.0.0"),
        ("file:///etc", "1.0.0"),
        ("https://example.com/x.js", "1.0.0"),
        ("Zod", "1.0.0"),
        ("zod\n", "1.0.0"),
        ("zod", "1.0.0\n"),
    ],
)
def test_only_a_name_at_an_exact_version_is_a_package(tmp_path: Path, name: str, version: str) -> None:
    with pytest.raises(CodeInvalid):
        bundled(tmp_path, {name: version})
    assert list(tmp_path.iterdir()) == []


async def test_a_bundle_in_the_folder_is_used_without_network(tmp_path: Path, run: Run) -> None:
    (tmp_path / "@scope__words@1.2.3.js").write_text(
        "export const up = (text) => text.toUpperCase(); export default up"
    )
    modules = bundled(tmp_path, {"@scope/words": "1.2.3"})
    result = await run(
        'const words = await load("@scope/words"); return [words.up("a"), words.default("b")]', modules=modules
    )
    assert result.value == ["A", "B"]


def test_what_cannot_be_fetched_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9/")
    with pytest.raises(SandboxUnavailable, match=r"zod@4\.1\.12"):
        bundled(tmp_path, {"zod": "4.1.12"})
    assert list(tmp_path.iterdir()) == []


def test_python_that_is_not_installed_is_explained(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="install_sandbox_python"):
        python_folder(tmp_path)
