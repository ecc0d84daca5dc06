"""Environment variables, read in one place and loudly.

`settings.py` declares every variable with one of the functions below; each call adds to `variables`, which the
documentation test and the unknown-key check read. A value that cannot be understood is an `EnvError` of one line.
Secrets may be given as a file: `OPENAI_API_KEY_FILE=/run/secrets/key`.
"""

import dataclasses
import difflib
import json
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from thinkproject.config.paths import private_data_directory
from thinkproject.kernel.conf import with_fields
from thinkproject.kernel.removed_settings import removed

variables: dict[str, str] = {}
"""Name of each declared environment variable to what it is for."""

PREFIX = "THINK_"
TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off"})


class EnvError(ImproperlyConfigured):
    """An environment variable is invalid. The message is one line and names the variable."""


def env_text(name: str, default: str = "", *, doc: str) -> str:
    """Return the text of a variable; unset and empty are the same."""
    variables[name] = doc
    return os.environ.get(name, "").strip() or default


def env_list(name: str, *, doc: str) -> list[str]:
    """Return the comma-separated words of a variable, without blanks."""
    return [word.strip() for word in env_text(name, doc=doc).split(",") if word.strip()]


def env_bool(name: str, *, default: bool, doc: str) -> bool:
    """Return a switch. Errors: `EnvError` for anything but the usual words."""
    text = env_text(name, doc=doc)
    return parse_bool(name, text) if text else default


def env_choice(name: str, choices: Sequence[str], *, doc: str) -> str:
    """Return one of the choices, by default the first. Errors: `EnvError` for another word."""
    word = env_text(name, choices[0], doc=doc)
    if word not in choices:
        raise EnvError(f"{name} is {word!r}; expected {' or '.join(choices)}.")
    return word


def env_int(name: str, default: int, *, doc: str, minimum: int = 0, maximum: int | None = None) -> int:
    """Return a whole number within bounds. Errors: `EnvError`."""
    text = env_text(name, doc=doc)
    if not text:
        return default
    value = parse_int(name, text)
    if value < minimum or (maximum is not None and value > maximum):
        raise EnvError(f"{name} is {value}; expected {minimum} to {maximum if maximum is not None else 'more'}.")
    return value


def env_secret(name: str, *, doc: str) -> str:
    """Return a secret from the variable or from the file that `NAME_FILE` names. Errors: `EnvError`."""
    variables[name] = doc
    variables[f"{name}_FILE"] = f"A file that holds {name}."
    path = os.environ.get(f"{name}_FILE", "").strip()
    value = os.environ.get(name, "").strip()
    if path and value:
        raise EnvError(f"{name} and {name}_FILE are both set; keep one of them.")
    if not path:
        return value
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise EnvError(f"{name}_FILE names {path!r}, which cannot be read: {_reason(error)}.") from error


def parse_bool(name: str, text: str) -> bool:
    """Understand a switch. Errors: `EnvError`."""
    word = text.strip().lower()
    if word in TRUE:
        return True
    if word in FALSE:
        return False
    raise EnvError(f"{name} is {text!r}; expected 1 or 0 (also true, false, yes, no, on, off).")


def parse_int(name: str, text: str) -> int:
    """Understand a whole number. Errors: `EnvError`."""
    try:
        return int(text)
    except ValueError as error:
        raise EnvError(f"{name} is {text!r}; expected a whole number.") from error


def parse_like(name: str, text: str, default: object) -> Any:
    """Understand the text of an app's setting by the type of its default. Errors: `EnvError`."""
    if isinstance(default, bool):
        return parse_bool(name, text)
    if isinstance(default, int):
        return parse_int(name, text)
    if isinstance(default, float):
        try:
            return float(text)
        except ValueError as error:
            raise EnvError(f"{name} is {text!r}; expected a number.") from error
    if isinstance(default, dict):
        return _parse_object(name, text)
    if dataclasses.is_dataclass(default):
        try:
            return with_fields(name, default, _parse_object(name, text))
        except ValueError as error:
            raise EnvError(str(error)) from error
    if isinstance(default, (list, tuple, set, frozenset)):
        return type(default)(word.strip() for word in text.split(",") if word.strip())
    return text


def _parse_object(name: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise EnvError(f"{name} is not JSON ({error}).") from error
    if not isinstance(value, dict):
        raise EnvError(f"{name} is {type(value).__name__}; expected a JSON object.")
    return value


def app_values(declared: Mapping[str, object], environ: Mapping[str, str]) -> dict[str, Any]:
    """The apps' settings from the environment (`declared`: name to default)."""
    return {
        name: parse_like(name, environ[name].strip(), default)
        for name, default in declared.items()
        if environ.get(name, "").strip()
    }


def refuse_unknown(known: Iterable[str], environ: Iterable[str]) -> None:
    """Refuse undeclared `THINK_*` keys. Errors: `EnvError` naming the nearest known one, or what replaced a setting."""
    for problem in removed(environ):
        raise EnvError(problem)
    names = sorted(known)
    for key in sorted(environ):
        if not key.startswith(PREFIX) or key in names:
            continue
        near = difflib.get_close_matches(key, names, n=1, cutoff=0.6)
        hint = f" Did you mean {near[0]}?" if near else " docs/reference/settings.md lists the known ones."
        raise EnvError(f"{key} is not a setting of this project.{hint}")


def kept_secret(path: Path) -> str:
    """Return the secret kept in `path`, making it once with mode 0600. Safe when several processes start at once.

    Errors: `EnvError` when the directory cannot be written.
    """
    try:
        private_data_directory(path.parent)
        draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        if not path.exists():
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(secrets.token_urlsafe(50))
            try:
                os.link(draft, path)  # atomic, and the first one wins
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise EnvError(f"The data directory {str(path.parent)!r} cannot be used: {_reason(error)}.") from error


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
