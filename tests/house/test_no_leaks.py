"""Committed text speaks of the project alone: no registry, no path of a user's machine, no generated lock address."""

import re

from tests.house.repository import ROOT, committed

_HOSTS = ["pypi" + ".org", "pythonhosted" + ".org", "npmjs" + ".org", "registry.npmjs" + ".com", "debian" + ".org"]
_PLACES = ["/" + "work/", "/" + "root/", "/tmp/" + "dev", "/bash" + "_jobs", "/" + "home/"]
_FORBIDDEN = re.compile("|".join(re.escape(text) for text in [*_HOSTS, *_PLACES]))
_SECRETS = re.compile(r"\bsk-(?:proj-)?[A-Za-z0-9]{32,}|-----BEGIN [A-Z ]*PRIVATE KEY-----")
_BINARY = (".png", ".jpg", ".gif", ".ico", ".woff2", ".webp", ".pdf", ".gz")


def _texts() -> list[tuple[str, str]]:
    return [
        (path, (ROOT / path).read_text(encoding="utf-8", errors="replace"))
        for path in committed()
        if not path.endswith(_BINARY)
    ]


def test_no_committed_text_names_a_registry_or_a_machine() -> None:
    found = [
        f"{path}:{number}: {line.strip()[:100]}"
        for path, text in _texts()
        for number, line in enumerate(text.splitlines(), 1)
        if _FORBIDDEN.search(line)
    ]
    assert not found, "\n" + "\n".join(found)


def test_no_committed_text_holds_a_secret() -> None:
    assert not [path for path, text in _texts() if _SECRETS.search(text)]


def test_no_lock_of_addresses_is_committed() -> None:
    assert not {"uv.lock", "package-lock.json", ".python-version"} & set(committed())
