"""Settings that apps declare (`kernel.conf.Setting`), filled from the environment while Django's settings load.

Declarations live in a `conf.py` or `conf_*.py` of an app or of a package in it. Such modules import nothing that needs
settings: they are read before the apps are loaded. What is declared elsewhere cannot come from the environment.
"""

import importlib
import importlib.util
from collections.abc import Iterable, Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from thinkproject.config import env
from thinkproject.kernel import conf


def app_settings(apps: Iterable[str], environ: Mapping[str, str], *, taken: Mapping[str, object]) -> dict[str, Any]:
    """Import the apps' declarations and return their values from the environment.

    Shape: `taken` holds what settings.py read itself; that wins. Errors: `EnvError`.
    """
    for app in apps:
        _import_declarations(app)
    declared = {name: setting.default for name, setting in conf.registry.items() if name not in taken}
    return env.app_values(declared, environ)


def present(apps: Iterable[str]) -> list[str]:
    """The apps that can be imported."""
    return [app for app in apps if _found(app) is not None]


def check_environment(environ: Mapping[str, str]) -> None:
    """Refuse unknown `THINK_*` keys. Errors: `EnvError`."""
    env.refuse_unknown({*conf.registry, *env.variables}, environ)


def documented() -> dict[str, str]:
    """Every environment variable of the project with its purpose."""
    return {**{name: setting.doc for name, setting in conf.registry.items()}, **env.variables}


def _package(app: str) -> str:
    return app.partition(".apps.")[0]  # INSTALLED_APPS may name an AppConfig


def _found(app: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(_package(app))
    except ModuleNotFoundError:
        return None


def _import_declarations(app: str) -> None:
    if app.startswith(("django.", "channels", "daphne", "csp", "ninja", "axes")):
        return
    package, spec = _package(app), _found(app)
    if spec is None:
        raise env.EnvError(f"THINK_APPS names {app!r}, which cannot be imported; is it on PYTHONPATH or installed?")
    for folder in spec.submodule_search_locations or []:
        for path in sorted(Path(folder).rglob("conf*.py")):
            if path.stem == "conf" or path.stem.startswith("conf_"):
                importlib.import_module(".".join([package, *path.relative_to(folder).with_suffix("").parts]))
