"""Packages for code: which are refused, and that one in the folder needs no network."""

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.unit.tools_app.sandbox.conftest import Run
from tools_app.errors import CodeInvalid, SandboxUnavailable
from tools_app.sandbox.packages import allowed, bundled, python_folder, sources_of


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


@pytest.mark.parametrize(
    "given",
    [
        "date-fns@4.1.0, @scope/words@1.2.3-rc.1",
        "@scope/words@1.2.3-rc.1,date-fns@4.1.0,",
        {"date-fns": "4.1.0", "@scope/words": "1.2.3-rc.1"},
    ],
)
def test_allowed_packages_are_a_mapping_or_text(given: object) -> None:
    assert allowed(given) == {"date-fns": "4.1.0", "@scope/words": "1.2.3-rc.1"}
    assert allowed("") == allowed({}) == {}


async def test_a_package_is_read_once_in_a_process(tmp_path: Path) -> None:
    place = tmp_path / "words@1.0.0.js"
    place.write_text("export default 1")
    assert await sources_of(tmp_path, {"words": "1.0.0"}) == {"words": "export default 1"}
    place.unlink()
    assert await sources_of(tmp_path, {"words": "1.0.0"}) == {"words": "export default 1"}


async def test_a_package_that_cannot_be_fetched_is_explained_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9/")
    with pytest.raises(SandboxUnavailable, match=r"\(zod\).*install_sandbox_packages") as failure:
        await sources_of(tmp_path, {"zod": "4.1.12"})
    assert "127.0.0.1" not in failure.value.message
    (tmp_path / "zod@4.1.12.js").write_text("export default 1")
    assert await sources_of(tmp_path, {"zod": "4.1.12"}) == {"zod": "export default 1"}


def test_the_command_fetches_the_packages_of_the_setting(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.THINK_SANDBOX_PACKAGES_DIR = str(tmp_path)
    settings.THINK_SANDBOX_PACKAGES = {"words": "1.0.0"}
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9/")
    with pytest.raises(CommandError, match=r"words@1\.0\.0 could not be fetched"):
        call_command("install_sandbox_packages")
    (tmp_path / "words@1.0.0.js").write_text("export default 1")
    out = io.StringIO()
    call_command("install_sandbox_packages", stdout=out)
    assert "words: 16 bytes" in out.getvalue()
    settings.THINK_SANDBOX_PACKAGES = "words"
    with pytest.raises(CommandError, match="exact version"):
        call_command("install_sandbox_packages")


@pytest.mark.long
async def test_a_package_of_the_registry_runs_without_network(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Needs the npm registry, as the tests of the clients do."""
    packages = {"lodash-es": "4.17.21"}
    fetched = await sources_of(tmp_path, packages)
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9/")
    assert bundled(tmp_path, packages) == fetched
    code = """
        const lodash = await load("lodash-es");
        let error = "";
        try { await load("zod") } catch (failure) { error = String(failure) }
        return [lodash.chunk([1, 2, 3, 4, 5], 2), lodash.default.kebabCase("Hello World"), error];
    """
    result = await run(code, modules=fetched)
    assert result.value[:2] == [[[1, 2], [3, 4], [5]], "hello-world"]
    assert "zod" in result.value[2]


def test_python_that_is_not_installed_is_explained(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="install_sandbox_python"):
        python_folder(tmp_path)
