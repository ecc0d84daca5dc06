"""Laws of paths: one spelling, never outside of the root."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tools_app.core.files.paths import MAX_DEPTH, below, chain, is_within, joined, name_of, normalise, parent_of
from tools_app.errors import FileFailed
from tools_app.workspace.stores.directory import DirectoryWorkspace
from tools_app.workspace.stores.keys import MAX_KEY_CHARS, key_of
from tools_app.workspace.stores.object_names import component
from tools_app.workspace.stores.rooted import directory

PIECES = st.sampled_from(["a", "b", "..", ".", "", "a b", "%2e%2e", "...", "..a", "~", "é", "\\..", "\0", "\n", "/"])
SPELLINGS = st.lists(PIECES | st.text(max_size=5), max_size=12).map("/".join)


@given(SPELLINGS)
def test_a_path_has_one_spelling_that_is_within_the_root(text: str) -> None:
    try:
        path = normalise(text)
    except FileFailed:
        return
    components = path.split("/")[1:] if path != "/" else []
    assert path.startswith("/")
    assert not {"", ".", ".."} & set(components)
    assert len(components) <= MAX_DEPTH
    assert normalise(path) == path
    assert normalise(path[1:]) == path
    assert path.isprintable() or "\n" not in path


@given(SPELLINGS)
def test_a_path_on_disk_is_below_the_root(text: str) -> None:
    try:
        path = normalise(text)
    except FileFailed:
        return
    on_disk = os.path.normpath("/srv/files" + path)
    assert on_disk == "/srv/files" or on_disk.startswith("/srv/files/")


@given(st.lists(st.sampled_from(["a", "b", "a0", "a-", "a%"]), min_size=1, max_size=5))
def test_the_parts_of_a_path_fit_together(names: list[str]) -> None:
    path = "/" + "/".join(names)
    assert joined(parent_of(path), name_of(path)) == path
    assert chain(path)[-1] == path
    assert [name_of(each) for each in chain(path)] == names
    for each in chain(path):
        assert is_within(path, each)
        assert path == each or path.startswith(below(each))
        assert not is_within(path, each + "x")


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=900))
def test_keys_are_short_and_keep_the_order_of_beginnings(text: str) -> None:
    key = key_of(f"/{text}")
    assert len(key) <= MAX_KEY_CHARS
    assert key[:360] == f"/{text}"[:360]
    assert (key == f"/{text}") == (len(text) < MAX_KEY_CHARS)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/"), min_size=1, max_size=40))
def test_a_component_in_a_storage_is_one_and_is_no_other(text: str) -> None:
    found = component(text)
    assert not set(found) & set('/\\~:*?"<>|')
    assert found not in {".", ".."}
    assert not found.startswith(".")


LINKS = st.sampled_from(["/", "..", "../..", "/etc", ".", "a", "/a/b", "b/..", "../outside", "/proc/self/cwd"])


def plant(folder: str, links: list[tuple[str, str]]) -> Path:
    """A root with links beside a directory that is not to be reached."""
    outside, root = Path(folder, "outside"), Path(folder, "root")
    outside.mkdir()
    root.mkdir()
    (outside / "secret").write_text("secret")
    for name, target in links:
        place = root / name
        is_free = not place.is_symlink() and not place.exists()
        leads_nowhere = place.parent.is_symlink() and not place.parent.is_dir()
        if is_free and not leads_nowhere and _lies_below(place.parent, root):
            place.parent.mkdir(exist_ok=True)
            place.symlink_to(target)
    return root


def _lies_below(place: Path, root: Path) -> bool:
    # Not `Path.resolve`, which refuses links in a circle.
    return Path(os.path.realpath(place)).is_relative_to(os.path.realpath(root))


def has_stayed(folder: str) -> bool:
    outside = Path(folder, "outside")
    is_alone = sorted(os.listdir(folder)) == ["outside", "root"]
    return is_alone and os.listdir(outside) == ["secret"] and (outside / "secret").read_text() == "secret"


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "a/b", "a/c"]), LINKS), max_size=4), SPELLINGS)
@example([("a", "b/.."), ("a/b", "/")], "a")
async def test_planted_links_never_lead_outside(links: list[tuple[str, str]], text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        workspace = DirectoryWorkspace(plant(folder, links))
        for path in (text, f"{text}/secret", "a/secret", "a/b/secret", "b/../outside/secret"):
            try:
                assert await workspace.read_file(path) in {None, "mine"}
                await workspace.write_file(path, "mine")
            except FileFailed:
                continue
        assert has_stayed(folder)


def test_no_component_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "l").symlink_to(tmp_path)
    root = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(OSError), directory(root, "/l"):
            pass
    finally:
        os.close(root)
