"""Names of files that hold secrets: environment files, private keys, credentials. Pure."""

import re
import unicodedata
from fnmatch import fnmatchcase
from typing import Final

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
_WORDS: Final = re.compile(r"[^\s'\"`;&|<>()$={}\\,:]+")


def folded(text: str) -> str:
    """A text without what two spellings may differ in and still look or work alike: case, width, unseen characters."""
    wide = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in wide if char == " " or unicodedata.category(char) not in _UNSEEN)


def is_secret(path: str) -> bool:
    """Whether a path names a file that holds secrets, by its name or by the directory that it is in."""
    parts = [part.rstrip(". ") or part for part in folded(path).split("/") if part]
    if not parts or parts[-1] in _EXAMPLES:
        return False
    tails = ("/".join(parts[at:]) for at in range(len(parts)))
    return any(fnmatchcase(parts[-1], name) for name in _NAMES) or any(
        fnmatchcase(tail, place) for tail in tails for place in _PLACES
    )


def names_secret(command: str) -> bool:
    """Whether a word of a command names such a file. What a shell puts together is not seen."""
    return any(is_secret(word) for word in _WORDS.findall(command))
