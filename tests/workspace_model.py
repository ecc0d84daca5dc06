"""Random operations on a store and on the model (`MemoryWorkspace`), which have to agree on everything."""

from typing import Any

from hypothesis import strategies as st

from tools_app.core.files.workspace import Link, MakeDirectory, Put, Remove, Workspace
from tools_app.errors import FileFailed
from tools_app.workspace.stores.memory import MemoryWorkspace

NAMES = st.sampled_from(["a", "b", "a%", "a_", "a0", "ab"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: "/" + "/".join(names))
CONTENTS = st.sampled_from([b"", b"x", b"large" * 10])
TARGETS = PATHS | st.sampled_from(["..", "a", "../b", "/"])

CALLS: "st.SearchStrategy[tuple[str, tuple[Any, ...], dict[str, Any]]]" = st.one_of(
    st.tuples(st.just("write_file"), st.tuples(PATHS, CONTENTS), st.just({})),
    st.tuples(st.just("append_file"), st.tuples(PATHS, CONTENTS), st.just({})),
    st.tuples(st.just("delete_file"), st.tuples(PATHS), st.just({})),
    st.tuples(st.just("mkdir"), st.tuples(PATHS), st.fixed_dictionaries({"recursive": st.booleans()})),
    st.tuples(
        st.just("rm"), st.tuples(PATHS), st.fixed_dictionaries({"recursive": st.booleans(), "force": st.booleans()})
    ),
    st.tuples(st.just("cp"), st.tuples(PATHS, PATHS), st.fixed_dictionaries({"recursive": st.booleans()})),
    st.tuples(st.just("mv"), st.tuples(PATHS, PATHS), st.just({})),
    st.tuples(st.just("symlink"), st.tuples(TARGETS, PATHS), st.just({})),
    st.tuples(
        st.just("apply"),
        st.tuples(
            st.lists(
                st.one_of(
                    st.builds(Put, path=PATHS, content=CONTENTS),
                    st.builds(Remove, path=PATHS),
                    st.builds(MakeDirectory, path=PATHS),
                    st.builds(Link, path=PATHS, target=TARGETS),
                ),
                max_size=5,
            )
        ),
        st.just({}),
    ),
)
SEQUENCES = st.lists(CALLS, min_size=1, max_size=12)
__all__ = ["SEQUENCES", "agrees"]


async def agrees(workspace: Workspace, calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]]) -> None:
    """Do the same on both: results, errors, events and everything that is there are the same after each."""
    model = MemoryWorkspace()
    events: tuple[list[Any], list[Any]] = ([], [])
    model.on_change(events[0].extend)
    workspace.on_change(events[1].extend)
    for name, arguments, options in calls:
        ends = [await _end(each, name, arguments, options) for each in (model, workspace)]
        assert ends[0] == ends[1], (name, arguments, options)
    assert events[0] == events[1]
    assert await _shown(model) == await _shown(workspace)
    info, other = await model.info(), await workspace.info()
    assert (info.file_count, info.directory_count, info.byte_count) == (
        other.file_count,
        other.directory_count,
        other.byte_count,
    )


async def _end(workspace: Workspace, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    try:
        result = await getattr(workspace, name)(*arguments, **options)
    except FileFailed as error:
        return error.errno
    return (result.path, result.size) if hasattr(result, "size") else result


async def _shown(workspace: Workspace) -> list[Any]:
    entries = await workspace.glob("**/*")
    return [
        (entry.path, entry.kind, entry.target, await workspace.read_bytes(entry.path) if entry.kind == "file" else None)
        for entry in entries
    ]
