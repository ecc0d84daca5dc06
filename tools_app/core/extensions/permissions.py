"""Comparing permissions, and saying them in plain words to the person who confirms them."""

from collections.abc import Iterable, Sequence
from typing import Final

from thinkproject.kernel.phrases import Phrase
from tools_app.core.extensions.manifest import ALL, OWN, Manifest, Permissions

LIST_CHARS: Final = 60
"""Width of a list of hosts or labels; the whole stands in the arguments beside the question."""

_FILES: Final = ("none", "read", "read-write")


def is_within(asked: Permissions, limit: Permissions) -> bool:
    """Whether permissions allow nothing that the others do not. Rules of hosts are compared as they are written."""
    return (
        _covers(limit.network, asked.network)
        and _FILES.index(asked.workspace) <= _FILES.index(limit.workspace)
        and _covers(limit.context.read, asked.context.read)
        and _writes_within(asked, limit)
        and (asked.messages == "none" or limit.messages == "read")
        and (not asked.session.send_message or limit.session.send_message)
        and (not asked.session.metadata or limit.session.metadata)
    )


def has_host(permissions: Permissions, manifest: Manifest) -> bool:
    """Whether an extension has anything to call `host` for. Requests to the network need no `host`."""
    return (
        permissions.workspace != "none"
        or bool(permissions.context.read)
        or bool(permissions.context.write if permissions.context.write != OWN else manifest.context)
        or permissions.messages != "none"
        or permissions.session.send_message
        or permissions.session.metadata
    )


def only_reads(permissions: Permissions, manifest: Manifest) -> bool:
    """Whether calls of its tools change nothing anywhere: a request to the network may."""
    writes = manifest.context if permissions.context.write == OWN else permissions.context.write
    return (
        not permissions.network
        and permissions.workspace != "read-write"
        and not writes
        and not permissions.session.send_message
    )


def in_words(permissions: Permissions, manifest: Manifest) -> list[Phrase]:
    """The permissions in words for people, each kind in one short sentence: none is hidden by the length of another."""
    return [
        _files(permissions.workspace),
        _network(permissions.network),
        _conversation(permissions),
        *_context(permissions, manifest),
        *_hooks(manifest.hooks),
    ]


def _files(access: str) -> Phrase:
    if access == "read-write":
        return Phrase("Files: reads, changes and deletes.")
    return Phrase("Files: reads.") if access == "read" else Phrase("Files: none.")


def _network(network: str | Sequence[str]) -> Phrase:
    if network == ALL:
        return Phrase("Network: every public host.")
    return Phrase("Network: sends data to {hosts}.", hosts=_few(network)) if network else Phrase("Network: none.")


def _conversation(permissions: Permissions) -> Phrase:
    reads, session = permissions.messages == "read", permissions.session
    if reads and session.send_message:
        return Phrase("Conversation: reads and adds messages.")
    if reads:
        return Phrase("Conversation: reads messages.")
    if session.send_message:
        return Phrase("Conversation: adds messages.")
    return Phrase("Conversation: its name and size.") if session.metadata else Phrase("Conversation: nothing of it.")


def _context(permissions: Permissions, manifest: Manifest) -> Iterable[Phrase]:
    context = permissions.context
    if context.read == ALL:
        yield Phrase("Context: reads the system prompt and every block.")
    elif context.read:
        yield Phrase("Context: reads {labels}.", labels=_few(context.read))
    written = list(manifest.blocks) if context.write == OWN else list(context.write)
    if written:
        yield Phrase("Context: writes {labels}, which models read.", labels=_few(written))


def _hooks(hooks: Sequence[str]) -> Iterable[Phrase]:
    if "beforeTurn" in hooks:
        yield Phrase("Turns: changes their settings.")
    if any(hook != "beforeTurn" for hook in hooks):
        yield Phrase("Turns: follows their steps and calls.")


def _few(names: Sequence[str]) -> str:
    """The first names within a width, and how many more there are."""
    shown: list[str] = []
    for name in names:
        if len(", ".join([*shown, name])) > LIST_CHARS:
            break
        shown.append(name)
    if not shown:
        shown = [f"{names[0][: LIST_CHARS - 1]}…"]
    more = len(names) - len(shown)
    return f"{', '.join(shown)} (+{more})" if more else ", ".join(shown)


def _covers(limit: str | Sequence[str], asked: str | Sequence[str]) -> bool:
    if limit == ALL:
        return True
    return asked != ALL and set(asked) <= set(limit)


def _writes_within(asked: Permissions, limit: Permissions) -> bool:
    if asked.context.write == limit.context.write or not asked.context.write:
        return True
    return OWN not in (asked.context.write, limit.context.write) and set(asked.context.write) <= set(
        limit.context.write
    )
