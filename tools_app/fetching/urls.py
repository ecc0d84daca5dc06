"""URLs that a model asks for: which of them are taken, and which rules allow them. Pure.

The URL is parsed once, and the same value is what the client connects to: there is no second parser to disagree with.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from yarl import URL

from tools_app.core.files.globs import GlobPattern, compile_glob
from tools_app.errors import FileFailed, ToolDeclarationInvalid
from tools_app.fetching.addresses import parse_address
from tools_app.fetching.errors import FetchFailed

MAX_URL_CHARS: Final = 4_096
MAX_HOST_CHARS: Final = 253
_LABEL: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER: Final = re.compile(r"\d+|0x[0-9a-f]*")
_RULE: Final = re.compile(
    r"(?:(https?)://)?(\*\.|\*(?=[:/]|$))?(\[[0-9a-f:.]+\]|[^/:*\[\]]*)(?::(\d{1,5}))?(/.*)?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowRule:
    """One entry of an allow-list. An empty `host` with `with_subdomains` is every host; `port` 0: the scheme's own."""

    scheme: str
    host: str
    with_subdomains: bool
    port: int
    path: str
    pattern: GlobPattern | None

    def allows(self, url: URL) -> bool:
        """Whether this entry allows a URL that was checked."""
        if url.scheme != self.scheme or url.port != (self.port or URL.build(scheme=self.scheme, host="x").port):
            return False
        host = url.raw_host or ""
        if self.with_subdomains:
            if self.host and not host.endswith("." + self.host):
                return False
        elif host != self.host:
            return False
        return self._allows_path(_decoded(url.raw_path or "/"))

    def _allows_path(self, path: str) -> bool:
        if self.path in {"", "/"}:
            return True
        if any(segment in {".", ".."} for segment in re.split(r"[/\\]", path)):
            return False
        if self.pattern is not None:
            return self.pattern.matches(path)
        return path == self.path or path.startswith(self.path.rstrip("/") + "/")


def parse_rules(allow: Iterable[str]) -> tuple[AllowRule, ...]:
    """Read an allow-list. Errors: `ToolDeclarationInvalid` for an empty one, and for an entry that is no rule.

    An entry is `[scheme://]host[:port][/path]`, the scheme `https` unless it is named. `*.example.com` means the hosts
    below `example.com`, `*` any public host. A path allows what lies below it, or is a pattern with `*` and `**`.
    """
    if isinstance(allow, str):
        raise ToolDeclarationInvalid(f"A list of addresses that may be fetched is needed, not the text {allow!r}.")
    rules = tuple(_rule(entry) for entry in allow)
    if not rules:
        raise ToolDeclarationInvalid("A fetch tool needs a list of the addresses that may be fetched: it is empty.")
    return rules


def checked_url(text: str) -> URL:
    """Parse a URL. Errors: `FetchFailed` (`disallowed_url`) for one that is odd in any way.

    Refused are other schemes, names and passwords, backslashes, spaces and control characters, and hosts that are
    neither a name nor an address in its usual spelling (`0x7f.1`, `2130706433`, `127.1`). A fragment is dropped.
    """
    if not text or len(text) > MAX_URL_CHARS:
        raise _disallowed(f"A URL has 1 to {MAX_URL_CHARS} characters.")
    if any(char <= " " or char == "\\" or not char.isprintable() for char in text):
        raise _disallowed("The URL has a backslash, a space or a character that cannot be shown.")
    if not text.lower().startswith(("http://", "https://")):
        raise _disallowed("Only http and https URLs with a host can be fetched.")
    try:
        url = URL(text).with_fragment(None)
        host, port = url.raw_host or "", url.port
    except ValueError:
        raise _disallowed("This is no valid URL.") from None
    if "@" in re.split("[/?#]", text.partition("//")[2], maxsplit=1)[0]:
        raise _disallowed("The URL has a user name or a password.")
    if not port:
        raise _disallowed("The port is not valid.")
    if not _is_usual_host(host):
        raise _disallowed("The host is neither a name nor an address in its usual spelling.")
    return url


def check_allowed(url: URL, rules: Sequence[AllowRule]) -> None:
    """Errors: `FetchFailed` (`disallowed_url`) if no entry of the allow-list allows the URL."""
    if not any(rule.allows(url) for rule in rules):
        raise _disallowed(f"The URL is not on the list of those that may be fetched: {url}")


def _is_usual_host(host: str) -> bool:
    if ":" in host or _NUMBER.fullmatch(host.rpartition(".")[2]):
        address = parse_address(host)
        return address is not None and (address.version == 6 or str(address) == host)
    return len(host) <= MAX_HOST_CHARS and all(_LABEL.fullmatch(label) for label in host.split("."))


def _rule(entry: str) -> AllowRule:
    found = _RULE.fullmatch(entry.strip())
    if found is None:
        raise _no_rule(entry)
    scheme, star, host, port, path = (part or "" for part in found.groups())
    is_everything = star == "*" and not host
    host = _ascii_host(host.strip("[]"), entry)
    if not is_everything and (star == "*" or not _is_usual_host(host) or (star and ":" in host)):
        raise _no_rule(entry)
    if port and not 0 < int(port) < 65_536:
        raise _no_rule(entry)
    try:
        pattern = compile_glob(path) if any(char in path for char in "*?[{") else None
    except FileFailed as error:
        raise _no_rule(entry) from error
    return AllowRule(
        scheme=scheme.lower() or "https",
        host=host,
        with_subdomains=bool(star),
        port=int(port or 0),
        path=path,
        pattern=pattern,
    )


def _ascii_host(host: str, entry: str) -> str:
    try:
        return (URL.build(scheme="https", host=host).raw_host or "") if host else ""
    except ValueError as error:
        raise _no_rule(entry) from error


def _decoded(path: str) -> str:
    """The path without percent signs, as a server may read it after having decoded it more than once."""
    for _ in range(3):
        decoded = unquote(path)
        if decoded == path:
            break
        path = decoded
    return path


def _disallowed(message: str) -> FetchFailed:
    return FetchFailed("disallowed_url", message)


def _no_rule(entry: str) -> ToolDeclarationInvalid:
    return ToolDeclarationInvalid(
        f"{entry!r} is no address to allow: expected a host as example.com or *.example.com/docs"
    )
