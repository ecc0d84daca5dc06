"""The tree of a workspace for the system prompt."""

from tools_app.file_tools.tree_snapshot import tree_snapshot
from tools_app.workspace.stores.memory import MemoryWorkspace


async def filled(*paths: str) -> MemoryWorkspace:
    workspace = MemoryWorkspace()
    for path in paths:
        await workspace.write_file(path, "x" * 10)
    return workspace


async def test_the_tree_is_indented_directories_first() -> None:
    workspace = await filled("/src/app/a.py", "/src/b.py", "/README.md")
    await workspace.symlink("README.md", "/link")
    assert (
        await tree_snapshot(workspace)
        == "src/\n  app/\n    a.py (10 B)\n  b.py (10 B)\nREADME.md (10 B)\nlink -> README.md"
    )


async def test_an_empty_workspace_says_so() -> None:
    assert await tree_snapshot(MemoryWorkspace()) == "(empty)"


async def test_what_is_ignored_is_left_out() -> None:
    workspace = await filled("/node_modules/x.js", "/a.js")
    await workspace.write_file("/.gitignore", "node_modules\n.gitignore\n")
    assert await tree_snapshot(workspace) == "a.js (10 B)"


async def test_the_entries_nearest_to_the_root_are_shown() -> None:
    workspace = await filled(*(f"/a/deep/{number}" for number in range(50)), "/a/x", "/z")
    assert (
        await tree_snapshot(workspace, max_entries=5)
        == "a/\n  deep/\n    0 (10 B)\n    ... 49 more\n  x (10 B)\nz (10 B)"
    )
    assert await tree_snapshot(workspace, max_entries=3) == "a/\n  deep/\n    ... 50 more\n  ... 1 more\nz (10 B)"


async def test_the_text_is_bounded() -> None:
    workspace = await filled(*(f"/{'n' * 100}{number}" for number in range(300)))
    text = await tree_snapshot(workspace, max_entries=1_000, max_chars=2_000)
    assert 1_000 < len(text) <= 2_000
    assert text.splitlines()[-1].endswith(" more")
    assert len(await tree_snapshot(workspace, max_chars=50)) <= 50


async def test_a_large_workspace_is_cut() -> None:
    workspace = await filled(*(f"/d{number % 7}/{number}" for number in range(5_100)))
    text = await tree_snapshot(workspace, max_entries=10)
    assert text.endswith("\n... and more")
    assert len(text.splitlines()) < 20


async def test_deep_trees_are_drawn_without_recursion() -> None:
    workspace = await filled("/" + "d/" * 90 + "f")
    assert (await tree_snapshot(workspace, max_chars=20_000)).endswith("  f (10 B)")
