"""Names of files that hold secrets: environment files, private keys, credentials. Pure."""

import re
import unicodedata
from collections.abc import Sequence
from fnmatch import translate
from typing import Final

import re2

_NAMES: Final = (
    ".env",
    ".env.*",
    "*.env",
    ".envrc",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".npmrc",
    ".pypirc",
    ".htpasswd",
    ".git-credentials",
    "credentials",
    "credentials.*",
    "*-credentials.json",
    "client_secret*.json",
    "service-account*.json",
    "secrets.yml",
    "secrets.yaml",
    "secrets.json",
    "secrets.toml",
)
_EXAMPLES: Final = (".env.example", ".env.sample", ".env.template", ".env.dist")
_PLACES: Final = (".ssh/*", ".aws/*", ".gnupg/*", ".kube/config", ".docker/config.json")
_UNSEEN: Final = frozenset({"Cf", "Cc", "Mn", "Zs"})
_NAME: Final = re.compile("|".join(map(translate, _NAMES)))
_PLACE: Final = re.compile("|".join(map(translate, _PLACES)))
_HINT_WORDS: Final = sorted({max(re.split(r"[*?/]", name), key=len) for name in (*_NAMES, *_PLACES)})
_HINTS: Final = re2.compile(rf"(?m)^.*(?:{'|'.join(map(re2.escape, _HINT_WORDS))}).*$")
_WORDS: Final = re.compile(r"[^\s'\"`;&|<>()$={}\\,:]+")


def folded(text: str) -> str:
    """A text without what two spellings may differ in and still look or work alike: case, width, unseen characters."""
    if text.isascii() and text.isprintable():
        return text.lower()  # the same, and searches ask about thousands of paths
    wide = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in wide if char == " " or unicodedata.category(char) not in _UNSEEN)


def is_secret(path: str) -> bool:
    """Whether a path names a file that holds secrets, by its name or by the directory that it is in."""
    parts = [part.rstrip(". ") or part for part in folded(path).split("/") if part]
    if not parts or parts[-1] in _EXAMPLES:
        return False
    return _NAME.match(parts[-1]) is not None or any(
        _PLACE.match("/".join(parts[at:])) for at, part in enumerate(parts) if part.startswith(".")
    )


def secret_among(paths: Sequence[str]) -> set[str]:
    """Find those of many paths that name such files. Most have none of the words, which is seen at once."""
    plain = [path for path in paths if path.isascii() and path.isprintable()]
    hints = {found[0] for found in _HINTS.finditer("\n".join(plain).lower())}
    others = set(paths).difference(plain) if len(plain) < len(paths) else set[str]()
    return (
        {path for path in paths if (path in others or path.lower() in hints) and is_secret(path)}
        if hints or others
        else set()
    )


def names_secret(command: str) -> bool:
    """Whether a word of a command names such a file. What a shell puts together is not seen."""
    return any(is_secret(word) for word in _WORDS.findall(command))
