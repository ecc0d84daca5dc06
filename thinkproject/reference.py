"""The generated tables of `docs/reference/`: settings, commands, error codes, providers, read from what defines them.

`python -m thinkproject.reference --write` (part of `make fix`) brings the pages in step; a house test compares them.
"""

import ast
import dataclasses
import importlib
import inspect
import itertools
import json
import os
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import django

from thinkproject.kernel.errors import ThinkError

ROOT = Path(__file__).resolve().parent.parent
PAGES = {name: f"docs/reference/{name}.md" for name in ("settings", "commands", "errors", "python", "providers")}
APPS = ("chat", "fibers", "sessions_app", "tools_app", "thinkproject")
PUBLIC = {
    "chat.think": "What agents are written with.",
    "chat.factories": "Agents without a class, and workers.",
    "chat.tools.files": "Tools for files, and where the files are.",
    "chat.tools.code": "Tools that run code.",
    "chat.tools.durable": "Tools that another process runs.",
    "chat.tools.openapi": "Tools made of an OpenAPI document.",
    "chat.tools.questions": "Questions with choices.",
    "chat.tools.skills": "Sources of skills.",
    "chat.tools.todo": "A to-do list.",
    "chat.tools.web": "Tools that read the web.",
    "chat.tools.browser": "Tools that drive a browser.",
    "chat.coding.agents": "Agents that work on code.",
    "chat.agent.callables": "Methods of an agent that its clients may call.",
    "chat.instance.handle": "An agent as server code holds it.",
    "chat.effects": "Code, tools and agents for rows of your own.",
    "chat.stored_chunks": "Chunks of answers in a table of your own.",
    "chat.webhooks.receiving": "Receivers of wakes of durable streams.",
    "chat.testing": "Tests of your agents.",
    "chat.client": "A client in Python.",
    "chat.http.api.router": "The JSON API in a project of your own.",
    "chat.routing": "The sockets in a project of your own.",
    "chat.admin_site": "The admin in a project of your own.",
    "sessions_app.public.manager": "Conversations without an agent.",
    "sessions_app.public.handle": "One conversation without an agent.",
    "sessions_app.context.folder_provider": "Skills in a folder.",
    "sessions_app.context.provider_storage": "Skills in Django's storage.",
    "fibers.registry": "Durable functions.",
    "fibers.testing": "Tests of durable functions.",
}
"""Modules whose names (`__all__`) are promised to developers; everything else may change without notice."""

BEGIN, END = "<!-- generated -->", "<!-- end of generated -->"


def main(arguments: list[str]) -> int:
    """Compare the pages with the code, or write them. Returns 1 when one is out of step."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings_test")
    django.setup()
    stale = [name for name in PAGES if not is_current(name)]
    for name in stale if "--write" in arguments else []:
        path = ROOT / PAGES[name]
        path.write_text(_with_table(path.read_text(encoding="utf-8"), table(name)), encoding="utf-8")
    return 0 if "--write" in arguments or not stale else 1


def is_current(name: str) -> bool:
    """Whether a page contains the generated table."""
    text = (ROOT / PAGES[name]).read_text(encoding="utf-8")
    return _with_table(text, table(name)) == text


def table(name: str) -> str:
    """Return the generated table of a page as markdown."""
    if name == "providers":
        from thinkproject.provider_tables import pages  # noqa: PLC0415 - settings must be loaded

        return pages()
    if name == "settings":
        titles = ("variable", "default", "what it is", "when to change it")
        return "\n\n".join(f"## {title}\n\n{_markdown(titles, rows)}" for title, rows in _settings().items())
    rows = {"commands": _commands, "errors": _errors, "python": _python}[name]()
    head = {"commands": ("command", "what it does"), "python": ("module", "name", "what it is")}
    return _markdown(head.get(name, ("code", "HTTP status", "try again", "meaning")), rows)


def _markdown(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [titles, tuple("---" for _ in titles), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)


def _with_table(text: str, markdown: str) -> str:
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{markdown}\n\n{END}{after}"


def _settings() -> dict[str, list[tuple[str, ...]]]:
    from thinkproject.config.app_settings import documented  # noqa: PLC0415 - settings must be loaded
    from thinkproject.kernel.conf import MachineLimit, PeopleLimit, registry  # noqa: PLC0415 - as above

    first, people, machines = "What one sets on the first day", "Limits for people", "Limits of machines"
    tables: dict[str, list[tuple[str, ...]]] = {first: [], people: [], machines: []}
    kinds: dict[object, str] = {PeopleLimit: people, MachineLimit: machines}
    for name, doc in sorted(documented().items()):
        setting = registry.get(name)
        default = setting.default if setting else None
        shown = "" if default is None or default in ("", (), [], {}) else f"`{_shown(default)}`"
        what, _, when = doc.rpartition(". ")
        title = machines if name.endswith(("_PROCESSES", "_THREADS", "_POOL_SIZE")) else first
        if not name.endswith("_FILE"):  # of a secret
            tables[kinds.get(type(setting), title)].append((f"`{name}`", shown, f"{what}.", when))
    return tables


def _shown(value: object) -> str:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return json.dumps(dataclasses.asdict(value))
    if isinstance(value, (tuple, list, set, frozenset)):
        return ",".join(str(item) for item in value)
    return str(int(value)) if isinstance(value, bool) else str(value)


def _commands() -> list[tuple[str, ...]]:
    from django.core.management import load_command_class  # noqa: PLC0415 - after setup

    rows: list[tuple[str, ...]] = []
    for app in APPS:
        folder = ROOT / app / "management" / "commands"
        names = [module.name for module in pkgutil.iter_modules([str(folder)])]
        rows.extend((f"`{name}`", load_command_class(app, name).help) for name in names)
    return sorted(rows)


def _errors() -> list[tuple[str, ...]]:
    for app in APPS:
        for path in sorted((ROOT / app).rglob("errors.py")):
            importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    found = {
        kind.code: kind
        for kind in _below(ThinkError)
        if kind.code not in {getattr(base, "code", "") for base in kind.__bases__}
    }
    rows: list[tuple[str, ...]] = []
    for code, kind in sorted(found.items()):
        meaning = inspect.cleandoc(kind.__doc__ or "").splitlines()[0]
        rows.append((f"`{code}`", str(kind.http_status), "yes" if kind.retryable else "no", meaning))
    return rows


def _python() -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for module_name in PUBLIC:
        module = importlib.import_module(module_name)
        rows.extend((f"`{module_name}`", f"`{name}`", meaning(module, name)) for name in sorted(module.__all__))
    return rows


def meaning(module: ModuleType, name: str) -> str:
    """The first line of a public name's docstring; for a constant or an alias, the string below it."""
    value = getattr(module, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        return inspect.cleandoc(value.__doc__ or "").partition("\n")[0]
    tree = ast.parse(inspect.getsource(module))
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return meaning(importlib.import_module(node.module), alias.name)
    for node, following in itertools.pairwise(tree.body):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        is_named = any(isinstance(target, ast.Name) and target.id == name for target in targets)
        if is_named and isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            return inspect.cleandoc(str(following.value.value)).replace("\n", " ")
    return ""


def _below(kind: type[ThinkError]) -> Iterator[type[ThinkError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _below(child)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
