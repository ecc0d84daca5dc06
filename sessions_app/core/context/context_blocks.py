"""Context blocks: declarations, rendering for the model, and their rules. Pure.

A **block** is a labelled text in the system prompt. A **provider** gives its content, and says by the methods it has
what kind of block it is: `get` alone is read-only, `get` and `set` writable, `get` and `load` a block of skills, `get`
and `search` a searchable one. The last two hold *entries* under keys; with `set` they take new ones.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Final, Literal, TypeAlias

from sessions_app.core.compaction.tokens import TokenCounter, count_tokens, estimate_text
from sessions_app.errors import BlockTooLarge, ContextInvalid
from thinkproject.kernel.phrases import Phrase

BAR: Final = "═" * 46
MAX_CHARS: Final = 500_000  # of a block, and of an entry
MAX_KEY_CHARS: Final = 200
SLUG_CHARS: Final = 60
_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_BASE36: Final = "0123456789abcdefghijklmnopqrstuvwxyz"

Of: TypeAlias = Literal["session", "user"]
"""Whose a stored block is: of one session, or of its owner and then the same in all of that person's sessions."""


@dataclass(frozen=True, slots=True)
class StoredText:
    """A writable text stored by the product; the default kind of block."""

    of: Of = "session"


@dataclass(frozen=True, slots=True)
class StoredSkills:
    """Documents under keys, kept by us, that a model loads when it needs them."""

    of: Of = "session"


@dataclass(frozen=True, slots=True)
class StoredSearch:
    """Entries under keys, kept by us, that a model searches."""

    of: Of = "session"


@dataclass(frozen=True, slots=True)
class SearchableHistory:
    """The messages of other sessions, to be searched. `of`: of the same scope, or all of the same owner."""

    of: Literal["user", "scope"] = "user"


Stored: TypeAlias = StoredText | StoredSkills | StoredSearch | SearchableHistory
Provider: TypeAlias = Any
"""A text, a function without arguments, or an object with `get` and perhaps `set`, `load`, `search`, `init`."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Capabilities of a block."""

    writable: bool = False
    is_skill: bool = False
    is_searchable: bool = False

    @property
    def is_keyed(self) -> bool:
        """Whether it holds entries under keys and not one text."""
        return self.is_skill or self.is_searchable

    @property
    def word(self) -> str:
        """The description of the kind for the model."""
        if self.is_skill:
            return "loadable"
        if self.is_searchable:
            return "searchable"
        return "writable" if self.writable else "readonly"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """A block as an agent declares it. `is_runtime`: it was added while the agent ran.

    `is_closed`: it is read in this session and not written, whatever its provider can do.
    """

    label: str
    provider: Provider
    description: str = ""
    max_tokens: int | None = None
    is_runtime: bool = False
    is_closed: bool = False

    @property
    def kind(self) -> Kind:
        """The block's capabilities."""
        kind = kind_of(self.provider)
        return replace(kind, writable=False) if self.is_closed else kind

    @property
    def of(self) -> str:
        """The owner of its content: session, user, or agent for content of the agent's provider."""
        provider = self.provider
        return provider.of if isinstance(provider, StoredText | StoredSkills | StoredSearch) else "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block with its content, as it is now. `tokens`: of the content, by the session's counter."""

    label: str
    description: str
    content: str
    tokens: int
    max_tokens: int | None
    writable: bool
    is_skill: bool
    is_searchable: bool
    of: str
    is_runtime: bool

    @property
    def kind(self) -> Kind:
        """The block's capabilities."""
        return Kind(self.writable, self.is_skill, self.is_searchable)

    @property
    def usage(self) -> str:
        """Usage of the block: a share of its limit, or its tokens."""
        if self.max_tokens is None:
            return f"{self.tokens} tokens"
        return f"{_percent(self)}% ({self.tokens}/{self.max_tokens} tokens)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A document under a key in a block."""

    key: str
    content: str
    title: str = ""
    description: str = ""


def declare(
    label: str, *, description: str = "", max_tokens: int | None = None, provider: Provider = None
) -> Declaration:
    """Declare a block. Without a provider it is a writable text of the session. Errors: `ContextInvalid`."""
    check_label(label)
    limit: object = max_tokens
    if limit is not None and (type(limit) is not int or limit < 1):
        raise ContextInvalid(
            Phrase(
                "Block {label!r}: max_tokens must be a positive whole number, not {limit!r}.", label=label, limit=limit
            )
        )
    return Declaration(
        label=label, description=description, max_tokens=max_tokens, provider=_as_provider(label, provider)
    )


def kind_of(provider: Provider) -> Kind:
    """Return a provider's kind, by its methods."""
    match provider:
        case StoredText():
            return Kind(writable=True)
        case StoredSkills():
            return Kind(writable=True, is_skill=True)
        case StoredSearch():
            return Kind(writable=True, is_searchable=True)
        case SearchableHistory():
            return Kind(is_searchable=True)
    return Kind(writable=_has(provider, "set"), is_skill=_has(provider, "load"), is_searchable=_has(provider, "search"))


def make_block(
    declaration: Declaration, content: str | None, counter: TokenCounter = estimate_text, *, of: str = ""
) -> Block:
    """Put a block and its content together. `of`: whose it is, where that is not as declared."""
    kind = declaration.kind
    return Block(
        label=declaration.label,
        description=declaration.description,
        content=content or "",
        tokens=count_tokens(content, counter) if content else 0,
        max_tokens=declaration.max_tokens,
        writable=kind.writable,
        is_skill=kind.is_skill,
        is_searchable=kind.is_searchable,
        of=of or declaration.of,
        is_runtime=declaration.is_runtime,
    )


def render(blocks: Iterable[Block], *, has_counts: bool = True) -> str:
    """Give the system prompt of the blocks, in their order, as plain text. Empty read-only ones are left out.

    Without counts a head says how much its block may hold, and not how full it is.
    """
    shown = (block for block in blocks if block.content or block.kind.word != "readonly")
    return "\n\n".join(_rendered(block, has_counts=has_counts) for block in shown)


def _rendered(block: Block, *, has_counts: bool) -> str:
    head = block.label.upper()
    if block.description:
        head += f" ({block.description})"
    if block.max_tokens is not None and not has_counts:
        head += f" [at most {block.max_tokens} tokens]"
    elif block.max_tokens is not None:
        head += f" [{_percent(block)}% — {block.tokens}/{block.max_tokens} tokens]"
    head += f" [{block.kind.word}]"
    return "\n".join([BAR, head, BAR, *([block.content] if block.content else [])])


def _percent(block: Block) -> int:
    return round(100 * block.tokens / block.max_tokens) if block.max_tokens else 0


def appended(content: str, addition: str) -> str:
    """Put a text at the end of another, on a line of its own."""
    if not content or not addition:
        return content + addition
    return content + addition if content.endswith("\n") else f"{content}\n{addition}"


def check_content(
    label: str, content: str, max_tokens: int | None, counter: TokenCounter = estimate_text, *, held: str = ""
) -> None:
    """Refuse content beyond a block's limit. Content already too large (`held`) may shrink.

    Errors: `BlockTooLarge`; `ContextInvalid` for a text that no database takes.
    """
    check_text(f"The content of {label!r}", content)
    if len(content) > MAX_CHARS:
        raise BlockTooLarge(
            Phrase(
                "Block {label!r} holds at most {limit} characters, not {length}.",
                label=label,
                limit=MAX_CHARS,
                length=len(content),
            )
        )
    if max_tokens is None:
        return
    tokens = count_tokens(content, counter) if content else 0
    if tokens > max_tokens and not (held and tokens < count_tokens(held, counter)):
        raise BlockTooLarge(
            Phrase(
                "Block {label!r} holds at most {limit} tokens; this would be {tokens}. Shorten it or replace what "
                "is no longer needed.",
                label=label,
                limit=max_tokens,
                tokens=tokens,
            ),
            tokens=tokens,
            max_tokens=max_tokens,
        )


def check_label(label: object) -> str:
    """Refuse a label that would be ambiguous in a prompt or an address. Errors: `ContextInvalid`."""
    if not isinstance(label, str) or not _LABEL.fullmatch(label):
        raise ContextInvalid(
            Phrase(
                "{label!r:.80} is no label of a block: expected 1 to 64 letters, digits, '_', '.' or '-'.", label=label
            )
        )
    return label


def check_key(key: object) -> str:
    """Refuse a key that could not be an address. Errors: `ContextInvalid`."""
    if not isinstance(key, str) or not key.strip() or len(key) > MAX_KEY_CHARS or "/" in key or not _is_plain(key):
        raise ContextInvalid(
            Phrase(
                "{key!r:.80} is no key of an entry: expected 1 to {limit} characters without '/' or control "
                "characters.",
                key=key,
                limit=MAX_KEY_CHARS,
            )
        )
    return key


def check_text(what: str, text: object) -> str:
    """Refuse anything but a text that PostgreSQL can store. Errors: `ContextInvalid`."""
    if not isinstance(text, str):
        raise ContextInvalid(Phrase("{what} must be a text, not {kind}.", what=what, kind=type(text).__name__))
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ContextInvalid(
            Phrase("{what} has characters that cannot be stored (NUL, or halves of a surrogate pair).", what=what)
        )
    return text


def entry_key(content: str, title: str = "") -> str:
    """Give the key of an entry: its title as a slug, or its content as one with a short hash."""
    slug = _slug(title)
    if slug:
        return slug
    words = _slug(content)[: SLUG_CHARS - 8].strip("-")
    return f"{words}-{_short_hash(content)}" if words else _short_hash(content)


def _slug(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text[:1000]).lower()
    return re.sub(r"[\W_]+", "-", plain).strip("-")[:SLUG_CHARS].strip("-")


def _short_hash(text: str) -> str:
    """FNV-1a of 32 bits in base 36: short, stable, and no secret."""
    value = 0x811C9DC5
    for byte in text.encode(errors="replace"):
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    digits = ""
    while value:
        value, digit = divmod(value, 36)
        digits = _BASE36[digit] + digits
    return digits or "0"


def key_list(entries: Iterable[Entry]) -> str | None:
    """List the available documents, one line each; empty without any."""
    lines = [f"- {entry.key}: {entry.description or entry.title}".rstrip(": ") for entry in entries]
    return "\n".join(lines) or None


def found_text(found: str | Sequence[Entry] | None, *, max_chars: int = 4000) -> str:
    """List the results of a search, at most ten entries, each cut to so many characters."""
    if isinstance(found, str):
        return found or NOTHING_FOUND
    return "\n\n".join(f"[{entry.key}]\n{shortened(entry.content, max_chars)}" for entry in (found or ())[:10]) or (
        NOTHING_FOUND
    )


NOTHING_FOUND: Final = "No results found."


def shortened(text: str, limit: int) -> str:
    """Truncate a text to a number of characters, with a marker."""
    return text if len(text) <= limit else f"{text[:limit]}... [truncated {len(text) - limit} chars]"


def _is_plain(text: str) -> bool:
    return all(unicodedata.category(character) not in {"Cc", "Cs"} for character in text)


def _as_provider(label: str, given: Provider) -> Provider:
    if given is None:
        return StoredText()
    if isinstance(given, Stored):
        return given
    if isinstance(given, str):
        return _fixed(given)
    if not _has(given, "get") and callable(given):
        return SimpleNamespace(get=given)
    if not _has(given, "get"):
        raise ContextInvalid(
            Phrase(
                "Block {label!r}: a provider is a text, a function, or an object with get(), not {given!r}.",
                label=label,
                given=given,
            )
        )
    return given


def _fixed(text: str) -> SimpleNamespace:
    async def get() -> str:
        return text

    return SimpleNamespace(get=get)


def _has(provider: Provider, method: str) -> bool:
    found: Callable[..., Any] | None = getattr(provider, method, None)
    return callable(found)
