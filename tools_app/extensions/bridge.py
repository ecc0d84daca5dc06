"""The calls of a running extension: each is decided by what is granted at this moment, done, and recorded.

Here is the wall. What the extension was made of, or says of itself, counts for nothing: a method, a host, a path or a
label that is not granted is refused and recorded as refused. A permission that is taken away counts from the next call.
"""

import ipaddress
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from thinkproject.kernel.loading import load
from thinkproject.kernel.phrases import Phrase
from tools_app.core.extensions.manifest import ALL, OWN, Permissions
from tools_app.core.extensions.naming import block_label
from tools_app.core.origins import NoteOrigin, Origin
from tools_app.errors import ExtensionDenied, ExtensionInvalid
from tools_app.extensions import records
from tools_app.extensions.conf import extension_settings
from tools_app.extensions.host import ExtensionPlace, HostServices
from tools_app.extensions.loaded import ExtensionStanding, LoadedExtension, standing_of
from tools_app.fetching.resolving import Resolve, resolve
from tools_app.fetching.urls import AllowRule, checked_url, parse_rules
from tools_app.fetching.values import FetchLimits, Outgoing
from tools_app.sandbox.contract import Answer
from tools_app.sandbox.packing import packed, unpacked

MAX_FILE_BYTES: Final = 700_000
"""Largest file that an extension can read or write: its call travels as text, and base64 makes it a third longer."""
MAX_ENTRIES: Final = 1_000
MAX_MESSAGES: Final = 100
MAX_MESSAGE_CHARS: Final = 20_000
NETWORK_LIMITS: Final = FetchLimits(seconds=20.0, max_bytes=700_000)

CheckEgress = Callable[[str], Awaitable[None]]
Handler = Callable[[ExtensionStanding, list[JSONValue]], Awaitable[JSONValue]]


@dataclass(slots=True, kw_only=True)
class HostBridge:
    """Answers the calls of one run. `during`: the tool or the hook that runs, for the record.

    `check_egress`: raises where the injection guard of the conversation keeps everything in.
    """

    extension: LoadedExtension
    services: HostServices
    place: ExtensionPlace
    during: str
    note_origin: NoteOrigin
    check_egress: CheckEgress
    resolver: Resolve = resolve
    fetched: bool = field(default=False, init=False)

    async def answer(self, name: str, args: list[JSONValue]) -> Answer:
        """Answer a call. Errors: `ThinkError`, which is an exception in the extension."""
        method = name.removeprefix("host.")
        call = records.HostCall(method=method, subject=_subject(method, args), during=self.during)
        try:
            handler = self._handlers().get(method)
            standing = await db(standing_of, self.extension)
            if handler is None:
                raise ExtensionDenied(Phrase("The host has no method {name!r}.", name=method[:60]))
            value = await handler(standing, args)
        except ThinkError as error:
            await db(records.note_call, self.extension, self.place, call, error)
            raise
        await db(records.note_call, self.extension, self.place, call, None)
        return Answer(value=value, now_ms=records.now_ms())

    def _handlers(self) -> dict[str, Handler]:
        return {
            "readFile": self._read_file,
            "writeFile": self._write_file,
            "deleteFile": self._delete_file,
            "listFiles": self._list_files,
            "getContext": self._get_context,
            "setContext": self._set_context,
            "getMessages": self._get_messages,
            "sendMessage": self._send_message,
            "getSessionInfo": self._session_info,
            "fetch": self._fetch,
        }

    # Files

    async def _read_file(self, standing: ExtensionStanding, args: list[JSONValue]) -> JSONValue:
        self._need_files(standing.granted, writes=False)
        path = _text(args, 0, "path")
        workspace = await self.services.workspace()
        entry = await workspace.stat(path)
        if entry is None:
            return None
        if entry.size > MAX_FILE_BYTES:
            raise ExtensionInvalid(Phrase("{path}: larger than {limit} bytes.", path=path, limit=MAX_FILE_BYTES))
        return await workspace.read_file(path)

    async def _write_file(self, standing: ExtensionStanding, args: list[JSONValue]) -> JSONValue:
        self._need_files(standing.granted, writes=True)
        path, content = _text(args, 0, "path"), _content(args, 1)
        await (await self.services.workspace()).write_file(path, content)
        return None

    async def _delete_file(self, standing: ExtensionStanding, args: list[JSONValue]) -> JSONValue:
        self._need_files(standing.granted, writes=True)
        path = _text(args, 0, "path")
        return await (await self.services.workspace()).delete_file(path)

    async def _list_files(self, standing: ExtensionStanding, args: list[JSONValue]) -> JSONValue:
        self._need_files(standing.granted, writes=False)
        path = _text(args, 0, "path") if args and args[0] is not None else "/"
        found = await (await self.services.workspace()).read_dir(path, limit=MAX_ENTRIES)
        return [{"name": e.name, "path": e.path, "type": str(e.kind), "size": e.size} for e in found]

    def _need_files(self, granted: Permissions, *, writes: bool) -> None:
        if granted.workspace == "none" or (writes and granted.workspace != "read-write"):
            raise ExtensionDenied(
                Phrase(
                    "The extension {name!r} may not {what} files: its workspace permission is {access!r}.",
                    name=self.extension.name,
                    what="write" if writes else "read",
                    access=granted.workspace,
                )
            )

    # Context

    async def _get_context(self, standing: ExtensionStanding, args: list[JSONValue]) -> JSONValue:
        label = self._label(standing, _text(args, 0, "label"))
        read = standing.granted.context.read
        if read != ALL and label not in read and not await self._owns(standing, label):
            raise self._no_context("read", label)
        return (await self.services.context_blocks()).get(label)

    async def _set_context(self, standing: ExtensionStanding, args: list[JSONValue]) -> JSONValue:
        label, content = self._label(standing, _text(args, 0, "label")), _text(args, 1, "content")
        write = standing.granted.context.write
        is_allowed = await self._owns(standing, label) if write == OWN else label in write
        if not is_allowed:
            raise self._no_context("write", label)
        await self.services.write_context(label, content)
        return None

    async def _owns(self, standing: ExtensionStanding, label: str) -> bool:
        if label not in standing.manifest.blocks:
            return False
        return (await self.services.extension_blocks()).get(label) == self.extension.prefix

    def _label(self, standing: ExtensionStanding, label: str) -> str:
        """A block's label in the conversation: its own blocks may be named without the prefix."""
        full = block_label(self.extension.prefix, label)
        return full if full in standing.manifest.blocks else label

    def _no_context(self, what: str, label: str) -> ExtensionDenied:
        return ExtensionDenied(
            Phrase(
                "The extension {name!r} may not {what} the context block {label!r}.",
                name=self.extension.name,
                what=what,
                label=label,
            )
        )

    # The conversation

    async def _get_messages(self, standing: ExtensionStanding, args: list[JSONValue]) -> JSONValue:
        if standing.granted.messages != "read":
            raise ExtensionDenied(Phrase("The extension {name!r} may not read messages.", name=self.extension.name))
        limit = args[0] if args and isinstance(args[0], int) and not isinstance(args[0], bool) else 20
        return list(await self.services.messages(max(1, min(limit, MAX_MESSAGES))))

    async def _send_message(self, standing: ExtensionStanding, args: list[JSONValue]) -> JSONValue:
        if not standing.granted.session.send_message:
            raise ExtensionDenied(Phrase("The extension {name!r} may not add messages.", name=self.extension.name))
        content = _text(args, 0, "content")
        if not content.strip() or len(content) > MAX_MESSAGE_CHARS:
            raise ExtensionInvalid(Phrase("A message has 1 to {limit} characters.", limit=MAX_MESSAGE_CHARS))
        return await self.services.send_message(self.extension.name, content)

    async def _session_info(self, standing: ExtensionStanding, _args: list[JSONValue]) -> JSONValue:
        if not standing.granted.session.metadata:
            raise ExtensionDenied(
                Phrase("The extension {name!r} may not see facts about the conversation.", name=self.extension.name)
            )
        return await self.services.session_info()

    # The network

    async def _fetch(self, standing: ExtensionStanding, args: list[JSONValue]) -> JSONValue:
        request = _outgoing(args)
        network = standing.granted.network
        if not network:
            raise ExtensionDenied(Phrase("The extension {name!r} has no network.", name=self.extension.name))
        rules = network_rules(network)
        url = checked_url(request.url)
        if not any(rule.allows(url) for rule in rules):
            raise ExtensionDenied(
                Phrase("The extension {name!r} may not reach {host}.", name=self.extension.name, host=url.host or "")
            )
        await self.check_egress(url.host or "")
        self.fetched = True
        self.note_origin(Origin.WEB, str(url.origin()))
        await load("tools_app.fetching.exchange")
        from tools_app.fetching.exchange import Exchange  # noqa: PLC0415 - it needs the HTTP client

        exchange = Exchange(rules, limits=NETWORK_LIMITS, private=private_networks(), resolver=self.resolver)
        answer = await exchange.send(request)
        return {
            "url": answer.url,
            "status": answer.status,
            "reason": answer.reason,
            "headers": [list(pair) for pair in answer.headers],
            "body": packed(answer.body),
            "redirected": answer.was_redirected,
        }


def network_rules(network: str | tuple[str, ...]) -> tuple[AllowRule, ...]:
    """The rules of a network permission. Errors: `ToolDeclarationInvalid` for one that is none."""
    if network == ALL:
        return parse_rules(["*", "http://*"]) if extension_settings.any_host else ()
    return parse_rules(network) if network else ()


def private_networks() -> tuple[Any, ...]:
    """Networks that may be reached although they are not public."""
    return tuple(ipaddress.ip_network(each) for each in extension_settings.private_networks)


def _subject(method: str, args: list[JSONValue]) -> str:
    """The subject of a call, for the record: a path, a label, or a method with an address."""
    if not args:
        return ""
    first = args[0]
    if method == "fetch" and isinstance(first, dict):
        return f"{first.get('method', '')} {first.get('url', '')}"[:300].replace("\x00", "")
    if method in {"sendMessage", "getMessages"}:
        return ""
    return first[:300].replace("\x00", "") if isinstance(first, str) else ""


def _text(args: list[JSONValue], position: int, name: str) -> str:
    value = args[position] if len(args) > position else None
    if not isinstance(value, str):
        raise ExtensionInvalid(Phrase("The argument {name!r} must be a text.", name=name))
    return value


def _content(args: list[JSONValue], position: int) -> str | bytes:
    """A file's content: a text, or bytes."""
    data = _bytes(args[position] if len(args) > position else None)
    return _text(args, position, "content") if data is None else data


def _bytes(value: JSONValue) -> bytes | None:
    try:
        return unpacked(value)
    except ValueError as error:
        raise ExtensionInvalid("These are no bytes.") from error


def _outgoing(args: list[JSONValue]) -> Outgoing:
    """The request of the `fetch` in the guest, or of other code that calls in its place."""
    given: JSONObject = args[0] if args and isinstance(args[0], dict) else {}
    url, method, headers = given.get("url"), given.get("method", "GET"), given.get("headers", [])
    is_pairs = isinstance(headers, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair) for pair in headers
    )
    body, redirect = given.get("body"), given.get("redirect", "follow")
    if not isinstance(url, str) or not isinstance(method, str) or not is_pairs:
        raise ExtensionInvalid("fetch takes an address, a method and headers.")
    sent = b"" if body is None else _bytes(body)
    if sent is None:
        raise ExtensionInvalid("These are no bytes.")
    return Outgoing(
        url=url,
        method=method,
        headers=tuple((name, value) for name, value in headers),
        body=sent,
        redirect=redirect if redirect in {"follow", "manual", "error"} else "follow",
    )
