"""`start_agent NAME`: create an agent of your own with a passing test, and explain how it is served."""

import importlib.util
import keyword
import os
import re
import shutil
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from chat.agent import declared, registry

AGENTS = """\
from chat.think import Think


class {class_name}(Think):
    title = "{title}"
    description = "Say in one line what it is for."
    icon = "chat"
    suggestions = ("What can you do?",)
    workspace_tools = False  # tools for files cost 1,200 tokens in each call; see docs/howto/keep-an-agent-small.md

    def get_model(self):
        return "default"
"""
TESTS = '''\
"""A turn with a scripted model: no server, no key, no worker."""

from django.test import TransactionTestCase, override_settings

from chat.testing import agent_client, think_test_settings
from {package}.agents import {class_name}


@override_settings(**think_test_settings)
class {class_name}Tests(TransactionTestCase):
    async def test_it_answers(self):
        async with agent_client({class_name}, "say: Hello there.") as client:
            reply = await client.chat("Hello?")
        self.assertEqual(reply.result.status, "completed")
        self.assertEqual(reply.text, "Hello there.")
        self.assertIn("Hello?", client.model.requests[0]["messages"][-1]["content"])
'''


class Command(BaseCommand):
    help = "Write a package with a three-line agent and its test, or add them to an app; overwrites nothing."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="Name of the agent: SupportDesk, support_desk and support-desk are the same.")
        parser.add_argument("--app", default="", help="Add to this importable package instead of making one.")
        parser.add_argument("--directory", default=".", help="Where the new package goes; without: here.")

    def handle(self, *_args: Any, **options: Any) -> None:
        class_name = _class_name(options["name"])
        route_name = declared.kebab(class_name)
        if route_name in {info.name for info in registry.list_agents()}:
            raise CommandError(f"There is an agent {route_name!r} already; choose another name.")
        if options["app"]:
            package, folder = options["app"], _folder_of(options["app"])
        else:
            package = route_name.replace("-", "_")
            folder = _new_folder(package, Path(options["directory"]))
        title = route_name.replace("-", " ").capitalize()
        names = {"package": package, "class_name": class_name, "title": title}
        files = {
            folder / "__init__.py": "",
            folder / "agents.py": AGENTS.format(**names),
            folder / "tests" / "__init__.py": "",
            folder / "tests" / "test_agents.py": TESTS.format(**names),
        }
        self._write(files)
        self._explain(package, folder, route_name)

    def _write(self, files: dict[Path, str]) -> None:
        present = [path for path, text in files.items() if text and path.exists()]
        if present:
            raise CommandError(f"{present[0]} exists; nothing was written.")
        for path, text in files.items():
            if text or not path.exists():
                try:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with path.open("x", encoding="utf-8") as file:
                        file.write(text)
                except OSError as error:
                    raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
                self.stdout.write(f"wrote {_short(path)}")

    def _explain(self, package: str, folder: Path, route_name: str) -> None:
        top = folder.parents[package.count(".")]
        is_found = str(top) in {str(Path(entry or ".").resolve()) for entry in sys.path}
        environ = "" if is_found else f"PYTHONPATH={_short(top)} "
        has_list = hasattr(settings, "THINK_APPS")  # ours; a project of one's own has INSTALLED_APPS alone
        if not _is_installed(package):
            if has_list:
                environ += f"THINK_APPS={','.join([*settings.THINK_APPS, package])} "
            else:
                self.stdout.write(f"\nAdd {package!r} to INSTALLED_APPS.")
        if has_list:
            self.stdout.write(f"\nServe it:     {environ}make run")
        manage = f"{_python()} manage.py"
        self.stdout.write(f"Talk to it:   {environ}{manage} agent_chat {route_name}")
        self.stdout.write(f"Run its test: {environ}{manage} test {package}")


def _python() -> str:
    """The command that runs this interpreter: the PATH's first `python` may lack Django."""
    found = shutil.which("python")
    is_this = found is not None and os.path.realpath(Path(found).parent) == os.path.realpath(
        Path(sys.executable).parent
    )
    return "python" if is_this else _short(Path(sys.executable))


def _class_name(given: str) -> str:
    words = [word for word in re.split(r"[-_\s]+", given) if word]
    name = "".join(word[0].upper() + word[1:] for word in words)
    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name):
        raise CommandError(f"{given!r} cannot name a class; use letters and digits, such as SupportDesk.")
    return name


def _folder_of(package: str) -> Path:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise CommandError(f"{package!r} is no package that can be imported; is it on PYTHONPATH?")
    return Path(next(iter(spec.submodule_search_locations))).resolve()


def _new_folder(package: str, directory: Path) -> Path:
    folder = directory.resolve() / package
    if folder.exists():
        raise CommandError(f"{folder} exists; nothing was written. To add to it: --app {package}")
    if keyword.iskeyword(package) or importlib.util.find_spec(package) is not None:
        raise CommandError(f"There is a module {package!r} already; choose another name.")
    return folder


def _is_installed(package: str) -> bool:
    return any(config.name == package for config in apps.get_app_configs())


def _short(path: Path) -> str:
    """As short as it is still right from here."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith(os.path.join("..", "..")) else relative
