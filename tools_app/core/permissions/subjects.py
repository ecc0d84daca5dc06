"""Subjects of calls: the texts that patterns of rules are held against. Pure.

An allowance has to cover a subject for certain; a restriction already counts where it may concern it. So a command that
is more than one plain program with its arguments is covered by no pattern but `*`, and each of its pieces is still
held against restrictions.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.files.paths import parent_of
from tools_app.core.permissions.secret_files import is_secret, names_secret

MAX_CHARS: Final = 1000
"""A longer subject is not covered by a pattern; what is offered for always is no longer either."""

MAX_WORDS: Final = 40

_WILD: Final = frozenset("*?")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./-]+(?: +(?:[\w./:,@+=%-]|'[^'\n\r]*'|\"[^\"$`\\!\n\r]*\")+)* *")
_PIECES: Final = re.compile(r"[;&|\n\r(){}`<>]|\$\(")
_LOOKED_THROUGH: Final = frozenset("\\'\"$`")
_BEFORE: Final = frozenset(
    [
        "!",
        "-exec",
        "-execdir",
        "-ok",
        "builtin",
        "command",
        "do",
        "doas",
        "else",
        "env",
        "exec",
        "if",
        "nice",
        "nohup",
        "sudo",
        "then",
        "time",
        "timeout",
        "until",
        "while",
        "xargs",
    ]
)
_INTERPRETERS: Final = frozenset(
    [
        ".",
        "awk",
        "bash",
        "busybox",
        "dash",
        "deno",
        "eval",
        "find",
        "make",
        "node",
        "osascript",
        "perl",
        "php",
        "python",
        "python3",
        "ruby",
        "sed",
        "sh",
        "source",
        "ssh",
        "su",
        "xargs",
        "zsh",
    ]
)
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*\+?=")
_WORDS_OF_NAME: Final[Mapping[str, frozenset[str]]] = {
    "git": frozenset(
        [
            "add",
            "blame",
            "branch",
            "checkout",
            "commit",
            "diff",
            "fetch",
            "log",
            "pull",
            "push",
            "show",
            "stash",
            "status",
            "switch",
            "tag",
        ]
    ),
    "npm": frozenset(["ci", "install", "test"]),
    "cargo": frozenset(["build", "check", "clippy", "fmt", "test"]),
    "pip": frozenset(["freeze", "list", "show"]),
    "docker": frozenset(["images", "logs", "ps"]),
}
_READERS: Final = frozenset(
    [
        "cat",
        "date",
        "diff",
        "du",
        "echo",
        "grep",
        "head",
        "ls",
        "pwd",
        "sort",
        "stat",
        "tail",
        "tree",
        "uniq",
        "wc",
        "which",
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One thing that a call is about.

    `texts`: its spellings; an allowance has to match one. `parts`: further texts that only restrictions are held
    against. `is_plain`: a pattern may cover it. `is_opaque`: its text does not show what it does. `is_tree`: a
    directory with all that is in it. `offer`: the pattern that a person may allow for always; empty for none.
    """

    texts: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    is_plain: bool = True
    is_opaque: bool = False
    is_tree: bool = False
    is_secret: bool = False
    is_command: bool = False
    is_path: bool = False
    offer: str = ""

    def to_json(self) -> JSONObject:
        """The form that is stored with a question."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items() if value}


ANYTHING: Final = Subject(texts=("",), offer="*")
"""Of a call whose tool says nothing about its subjects: the pattern `*` covers it."""

UNKNOWN: Final = Subject(is_plain=False, is_opaque=True)
"""Of a call whose tool cannot say: no pattern but `*` covers it, and each restriction of its tool may concern it."""


def subject_from(stored: Mapping[str, Any]) -> Subject:
    """Read the stored form."""

    def is_set(name: str) -> bool:
        return stored.get(name) is True

    return Subject(
        texts=tuple(str(text) for text in stored.get("texts") or ()),
        parts=tuple(str(text) for text in stored.get("parts") or ()),
        is_plain=is_set("is_plain"),
        is_opaque=is_set("is_opaque"),
        is_tree=is_set("is_tree"),
        is_secret=is_set("is_secret"),
        is_command=is_set("is_command"),
        is_path=is_set("is_path"),
        offer=str(stored.get("offer") or ""),
    )


def text_subject(text: str) -> Subject:
    """A text of a developer's own."""
    return Subject(texts=(text,), offer="" if _WILD & set(text) or len(text) > MAX_CHARS else text)


def path_subjects(path: str, real: str | None = None, *, is_tree: bool = False) -> list[Subject]:
    """A normalised path of a workspace, and the file that it leads to where that is another one."""
    return [_path(each, is_tree=is_tree) for each in dict.fromkeys((path, real or path))]


def _path(path: str, *, is_tree: bool) -> Subject:
    secret, above = is_secret(path), parent_of(path)
    wide = path if secret or above == "/" else f"{above}/*"
    if is_tree:
        wide = f"{path}/*" if path != "/" else "*"
    offer = "" if _WILD & set(path) or len(wide) > MAX_CHARS else wide
    return Subject(texts=(path,), is_tree=is_tree, is_secret=secret, is_path=True, offer=offer)


def address_subject(url: str) -> Subject:
    """An address of the web: as it is, and its host alone where it is reached by https at the usual port."""
    try:
        split = urlsplit(url)
        host, port = (split.hostname or "").encode("idna").decode(), split.port
    except (UnicodeError, ValueError):
        return UNKNOWN
    is_odd = "@" in split.netloc or not host or any(char in url for char in "\\\n\r\t ")
    if is_odd or split.scheme.lower() not in {"http", "https"}:
        return UNKNOWN
    usual = {"http": 80, "https": 443}[split.scheme.lower()]
    place = host if port in (None, usual) else f"{host}:{port}"
    whole = f"{split.scheme.lower()}://{place}{split.path or '/'}" + (f"?{split.query}" if split.query else "")
    name = place if split.scheme.lower() == "https" else f"http://{place}"
    return Subject(texts=(whole, name), offer=name)


def command_subject(command: str) -> Subject:
    """A command of a shell."""
    text = command.strip()
    secret = names_secret(text)
    if len(text) <= MAX_CHARS and text.isprintable() and _PLAIN.fullmatch(text):
        text = _one_spaced(text)
        parts = tuple(dict.fromkeys(_spellings(text)))
        runs_others = any(word.rsplit("/", 1)[-1] in _INTERPRETERS for word in text.split(" "))
        return Subject(
            texts=(text,),
            parts=parts,
            is_opaque=runs_others,
            is_secret=secret,
            is_command=True,
            offer=_offer(text, secret),
        )
    pieces = [piece.strip() for piece in _PIECES.split(text) if piece.strip()]
    parts = tuple(dict.fromkeys(spelling for piece in pieces for spelling in _spellings(piece)))
    return Subject(
        texts=(text,),
        parts=parts,
        is_plain=False,
        is_opaque=any(char in _LOOKED_THROUGH for char in text),
        is_secret=secret,
        is_command=True,
    )


def _one_spaced(text: str) -> str:
    pieces = re.split(r"('[^']*'|\"[^\"]*\")", text)
    return "".join(piece if at % 2 else re.sub(r" +", " ", piece) for at, piece in enumerate(pieces))


def _spellings(piece: str) -> list[str]:
    """A piece of a command as restrictions are held against it: without quotes, prefixes, and the program's folder."""
    words = re.sub(r"['\"\\]", "", piece).split()[:MAX_WORDS]
    found = [piece]
    for at in range(len(words)):
        before = [word.rsplit("/", 1)[-1] for word in words[:at]]
        if at and not any(word in _BEFORE or _ASSIGNMENT.match(word) for word in before):
            continue
        found += [" ".join(words[at:]), " ".join([words[at].rsplit("/", 1)[-1], *words[at + 1 :]])]
    return found


def _offer(text: str, secret: bool) -> str:
    """The pattern to allow for always: a program with its first word where that says enough, else this command."""
    words = text.split(" ")
    name, first = words[0], words[1] if len(words) > 1 else ""
    if secret or _WILD & set(text):
        return "" if _WILD & set(text) else text
    if first in _WORDS_OF_NAME.get(name, ()):
        return f"{name} {first} *"
    return f"{name} *" if name in _READERS else text
