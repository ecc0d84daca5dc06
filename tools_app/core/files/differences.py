"""The operations that lead from the files that a script began with to those that it left. Pure."""

from collections.abc import Mapping

from tools_app.core.files.workspace import Entry, EntryKind, Link, MakeDirectory, Operation, Put, Remove


def differences(
    base: Mapping[str, Entry],
    kinds: Mapping[str, EntryKind],
    files: Mapping[str, bytes | bytearray],
    links: Mapping[str, str],
) -> list[Operation]:
    """Work out the operations, each with the version of what it replaces: removals first, innermost first.

    `base`: the entries at the beginning. `kinds`: everything that is there at the end. `files`: the contents of files
    that are new or may have changed. `links`: the targets of links, those that did not change may be left out.
    """
    replaced = [path for path, entry in base.items() if _is_replaced(entry, kinds, links)]
    removals: list[Operation] = [_removal(base[path]) for path in sorted(replaced, reverse=True)]
    made = [path for path, kind in kinds.items() if path not in base or base[path].kind is not kind]
    directories = [MakeDirectory(path=path) for path in sorted(made) if kinds[path] is EntryKind.DIRECTORY]
    linked: list[Operation] = []
    for path, target in sorted(links.items()):
        if path not in base:  # nothing may have come there meanwhile
            linked.append(Remove(path=path, expected_version="", recursive=False))
        if path not in base or _is_replaced(base[path], kinds, links):
            linked.append(Link(path=path, target=target))
    written = [
        Put(path=path, content=bytes(data), expected_version=_version(base.get(path)))
        for path, data in sorted(files.items())
    ]
    return [*removals, *directories, *linked, *written]


def _removal(entry: Entry) -> Remove:
    version = None if entry.kind is EntryKind.DIRECTORY else entry.version
    return Remove(path=entry.path, expected_version=version, recursive=False)


def _is_replaced(entry: Entry, kinds: Mapping[str, EntryKind], links: Mapping[str, str]) -> bool:
    """Whether something else stands there than at the beginning: nothing, another kind, a link to elsewhere."""
    if kinds.get(entry.path) is not entry.kind:
        return True
    return entry.kind is EntryKind.SYMLINK and links.get(entry.path, entry.target) != entry.target


def _version(entry: Entry | None) -> str:
    return entry.version if entry is not None and entry.kind is EntryKind.FILE else ""
