"""`think_doctor`: diagnose this installation and suggest fixes.

Every check looks at one thing, takes a few seconds at most and leaves nothing behind. The exit code is 1 when something
that a running product needs does not work; what is only missing for development is a note.
"""

import asyncio
import json
import os
import platform
import shutil
import socket
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import httpx
from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.files.base import ContentFile
from django.core.management.base import BaseCommand
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from chat.agent.registry import list_agents
from chat.durable_tools.declared import asked_for, members
from chat.http.health import readiness
from chat.llm.conf import llm_settings
from chat.llm.discovery import ChoiceKind
from chat.llm.registry import default_choice, facts_of, inquire_of
from chat.turns.guarding.handed_down import rules_of
from fibers.queue.presence import seen_within
from fibers.schedules.services import broken_schedules
from fibers.selectors import DAY_SECONDS, without_function
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.object_storage import object_storage
from tools_app.browser.starting import browser_report
from tools_app.core.guard.rules import ON
from tools_app.extensions.conf import extension_settings
from tools_app.extensions.loaded import with_ban
from tools_app.models.extensions import Extension
from tools_app.processes.tool import processes_report
from tools_app.sandbox.report import TierReport, sandbox_report

OLDEST_PYTHON = (3, 11)
NAMES_SHOWN = 5
FREE_MEGABYTES = 500
FILES_WANTED = 4096
SECONDS = 3.0
STORAGE_SECONDS = 10.0
DOCTOR_FOLDER = "think/doctor"
TIER_REPORTS: tuple[Callable[[], Coroutine[Any, Any, list[TierReport]]], ...] = (
    sandbox_report,
    processes_report,
    browser_report,
)
"""One for each kind of sandbox."""


class DoctorState(StrEnum):
    """The result of one check."""

    OK = "ok"
    NOTE = "note"  # works, but worth knowing
    WRONG = "wrong"  # something does not work


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """One line of the report."""

    name: str
    state: DoctorState
    detail: str


class Command(BaseCommand):
    help = "Say what is wrong with this installation; exit code 1 when something is."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object a line")

    def handle(self, *_args: Any, **options: Any) -> None:
        findings = examine()
        for finding in findings:
            if options["json"]:
                self.stdout.write(json.dumps(asdict(finding)))
            else:
                self.stdout.write(f"{finding.state:<6} {finding.name:<15} {finding.detail}")
        if any(finding.state is DoctorState.WRONG for finding in findings):
            sys.exit(1)


def examine() -> list[DoctorFinding]:
    """Run all checks. A broken installation is reported, never raised."""
    checks = (
        *(python, machine, data_dir, open_files, file_storage, database, redis_server, worker, web_server, pages),
        *(model, background_work, executors, schedules, extensions, chromium, injection_guard),
    )
    found = [finding for check in checks for finding in [_examined(check)] if finding is not None]
    return [*found, *code_of_models()]


def injection_guard() -> tuple[DoctorState, str]:
    """The agents whose class weakens the guard, each with its reason."""
    relaxed = [
        f"{appearance.name}: {rules.reason}"
        for appearance in list_agents()
        if (rules := rules_of(appearance.name)) != ON
    ]
    if not relaxed:
        return DoctorState.OK, "on for every agent"
    return DoctorState.NOTE, f"weakened by {len(relaxed)} of the agents: {'; '.join(relaxed)}"


def _examined(check: Callable[[], tuple[DoctorState, str] | None]) -> DoctorFinding | None:
    found = check()
    return None if found is None else DoctorFinding(check.__name__.replace("_", " "), *found)


def python() -> tuple[DoctorState, str]:
    """The interpreter is new enough."""
    detail = f"{platform.python_version()} at {sys.executable}"
    return (
        (DoctorState.OK, detail)
        if sys.version_info >= OLDEST_PYTHON
        else (DoctorState.WRONG, f"{detail}; 3.11 is the oldest")
    )


def machine() -> tuple[DoctorState, str]:
    """The platform is a tested one."""
    detail = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    is_tried = (platform.system(), platform.machine()) == ("Linux", "x86_64")
    return (DoctorState.OK, detail) if is_tried else (DoctorState.NOTE, f"{detail}; Linux x86_64 is what was tried")


def data_dir() -> tuple[DoctorState, str] | None:
    """The data directory can be written and has room. A project of its own has none."""
    if not hasattr(settings, "DATA_DIR"):
        return None
    path = Path(settings.DATA_DIR)
    if not path.exists():
        return DoctorState.NOTE, f"{path} is not there yet; `make run` makes it"
    try:
        with tempfile.TemporaryFile(dir=path):
            free = shutil.disk_usage(path).free // 1_000_000
    except OSError as error:
        return DoctorState.WRONG, f"{path} cannot be written: {error.strerror}"
    state = DoctorState.OK if free >= FREE_MEGABYTES else DoctorState.WRONG
    return state, f"{path}, {free} MB free"


def open_files() -> tuple[DoctorState, str] | None:
    """Each socket is an open file; the servers raise the soft limit as far as the hard one allows."""
    try:
        import resource  # noqa: PLC0415 - not on every platform
    except ImportError:
        return None
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY or hard >= FILES_WANTED:
        return DoctorState.OK, f"up to {'any number of' if hard == resource.RLIM_INFINITY else hard} open files"
    return DoctorState.NOTE, f"at most {hard} open files, so at most as many sockets in one process (ulimit -Hn)"


def file_storage() -> tuple[DoctorState, str]:
    """Large files can be stored, read back and deleted again."""
    kind = type(object_storage()).__name__
    pool = ThreadPoolExecutor(1)  # a storage may wait for a network for as long as it likes
    trial = pool.submit(_stores_bytes)
    pool.shutdown(wait=False)
    try:
        error = trial.exception(STORAGE_SECONDS)
    except TimeoutError:
        return DoctorState.WRONG, f"{kind} did not answer for {STORAGE_SECONDS:g} s; look at STORAGES"
    if error is not None:
        return DoctorState.WRONG, f"{kind} cannot keep large files ({type(error).__name__}); look at STORAGES"
    return (
        (DoctorState.OK, f"{kind} keeps large files")
        if trial.result()
        else (DoctorState.WRONG, f"{kind} gave other bytes back")
    )


def _stores_bytes() -> bool:
    store, written = object_storage(), b"think_doctor"
    name = store.save(f"{DOCTOR_FOLDER}/{new_id('obj')}", ContentFile(written))
    try:
        with store.open(name, "rb") as file:
            return bytes(file.read()) == written
    finally:
        store.delete(name)


def code_of_models() -> list[DoctorFinding]:
    """Each kind of code that can run here, what its walls lack, and why another cannot run."""
    return [
        DoctorFinding(
            f"code: {tier.tier}",
            DoctorState.OK if tier.is_available and not tier.is_weak else DoctorState.NOTE,
            tier.reason,
        )
        for report in TIER_REPORTS
        for tier in asyncio.run(report())
    ]


def database() -> tuple[DoctorState, str]:
    """The database answers and is migrated."""
    vendor = connection.vendor
    try:
        connection.ensure_connection()
        executor = MigrationExecutor(connection)
        missing = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    except (DatabaseError, OSError) as error:
        return (
            DoctorState.WRONG,
            f"{vendor} does not answer: {' '.join(str(error).split())[:200]}; look at DATABASE_URL",
        )
    if missing:
        return DoctorState.WRONG, f"{vendor} lacks {missing} migrations; run `manage.py migrate` (`make run` does)"
    return DoctorState.OK, f"{vendor}, migrated"


def redis_server() -> tuple[DoctorState, str]:
    """Redis answers."""
    is_embedded = getattr(settings, "USES_EMBEDDED_REDIS", False)
    where = "the embedded one" if is_embedded else "REDIS_URL"
    if readiness().parts["redis"] == "ok":
        return DoctorState.OK, f"{where} answers"
    advice = "start it with `make run`" if is_embedded else "is it running, and is the address right?"
    return DoctorState.WRONG, f"{where} does not answer; {advice}"


def worker() -> tuple[DoctorState, str]:
    """Some worker was seen lately."""
    parts = readiness().parts
    if parts["redis"] != "ok":
        return DoctorState.WRONG, "unknown while Redis does not answer"
    if parts["worker"] == "ok":
        return DoctorState.OK, "one was seen lately"
    return DoctorState.WRONG, "none was seen lately; accepted messages wait until one runs (`make run` starts one)"


def web_server() -> tuple[DoctorState, str] | None:
    """The port is ours, or free. A project of its own has its own server."""
    if not hasattr(settings, "PORT"):
        return None
    address = f"127.0.0.1:{settings.PORT}"
    try:
        answer = httpx.get(f"http://{address}/health/live", timeout=SECONDS, trust_env=False)
        if answer.status_code == 200 and answer.json() == {"status": "ok"}:
            return DoctorState.OK, f"answers on {address}"
    except (httpx.TransportError, ValueError):
        pass
    with socket.socket() as probe:
        probe.settimeout(SECONDS)
        if probe.connect_ex(("127.0.0.1", settings.PORT)) == 0:
            return DoctorState.WRONG, f"another program listens on {address}; set PORT"
    return DoctorState.NOTE, f"nothing listens on {address}; `make run` starts the web server"


def model() -> tuple[DoctorState, str]:
    """The default model's server answers."""
    choice = default_choice()
    if choice.kind is ChoiceKind.NONE:
        return DoctorState.WRONG, choice.hint
    base_url = choice.base_url or llm_settings.openai_base_url
    if not base_url:
        return DoctorState.OK, f"{choice.name}, asked when it is needed"
    headers = {"Authorization": f"Bearer {llm_settings.openai_api_key}"} if llm_settings.openai_api_key else {}
    try:
        answer = httpx.get(f"{base_url.rstrip('/')}/models", headers=headers, timeout=SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return DoctorState.WRONG, f"{choice.name}: its server does not answer ({type(error).__name__})"
    if answer.status_code in {401, 403}:
        return (
            DoctorState.WRONG,
            f"{choice.name}: its server refuses the key (HTTP {answer.status_code}); look at OPENAI_API_KEY",
        )
    return DoctorState.OK, f"{choice.name} at {base_url}{_abilities(choice.name)}"


def _abilities(name: str) -> str:
    """The server's report on the model, in words."""
    asyncio.run(inquire_of([name]))
    known = facts_of(name)
    words = [
        f"{known.limits.context_tokens:,} tokens" if known.limits.context_tokens else "a context that is not known"
    ]
    if known.calls_tools is not None:
        words.append("tools" if known.calls_tools else "no tools")
    words += [f"reads {medium}s" for medium in known.inputs or ()]
    return f": {', '.join(words)}"


def background_work() -> tuple[DoctorState, str]:
    """Work whose function or method is not in this deployment: it waits for one that brings it."""
    try:
        waiting = without_function()
    except DatabaseError as error:
        return DoctorState.WRONG, f"fibers cannot be read ({type(error).__name__}); run `manage.py migrate`"
    if not waiting:
        return DoctorState.OK, "every waiting fiber has its function"
    named = ", ".join(f"{name} ({count})" for name, count in waiting[:NAMES_SHOWN])
    total = sum(count for _name, count in waiting)
    return (
        DoctorState.NOTE,
        f"{total} wait for a deploy that has their function: {named}; nothing is lost, or cancel them",
    )


def executors() -> tuple[DoctorState, str]:
    """Tools that agents have run elsewhere, and that no process had within the last day."""
    try:
        seen = {name.partition(":")[2] for name in seen_within(DAY_SECONDS)}
    except DatabaseError as error:
        return DoctorState.WRONG, f"executors cannot be read ({type(error).__name__}); run `manage.py migrate`"
    missing = sorted(asked_for - set(members()) - seen)
    if missing:
        return DoctorState.NOTE, f"no executor of the last day has {', '.join(missing[:NAMES_SHOWN])}: calls wait"
    return DoctorState.OK, f"{len(seen)} tools were offered by executors within the last day"


def schedules() -> tuple[DoctorState, str]:
    """Schedules that fire no more, as their next time cannot be computed or their declaration cannot be read."""
    try:
        broken = broken_schedules()
    except DatabaseError as error:
        return DoctorState.WRONG, f"schedules cannot be read ({type(error).__name__}); run `manage.py migrate`"
    if not broken:
        return DoctorState.OK, "none is broken"
    named = "; ".join(f"{schedule_id}: {error}" for schedule_id, error in broken[:NAMES_SHOWN])
    return DoctorState.NOTE, f"{len(broken)} broken, which do not run: {named}"


def extensions() -> tuple[DoctorState, str]:
    """Extensions that are loaded, and what of them is disabled."""
    try:
        rows = [(row.enabled, vars(row)["is_banned"]) for row in with_ban(Extension.objects.only("enabled"))]
    except DatabaseError as error:
        return DoctorState.WRONG, f"their tables cannot be read ({type(error).__name__}); run `manage.py migrate`"
    stopped = sum(not enabled or is_banned for enabled, is_banned in rows)
    reach = "every public host" if extension_settings.any_host else "named hosts only"
    detail = f"{len(rows)} loaded, {stopped} of them disabled; they may be given {reach}"
    return (DoctorState.NOTE if extension_settings.any_host else DoctorState.OK), detail


def pages() -> tuple[DoctorState, str]:
    """The built page assets exist, in a checkout or a wheel."""
    found = finders.find("think/manifest.json")
    return (
        (DoctorState.OK, str(found))
        if found
        else (DoctorState.NOTE, "their scripts are missing: run `python static/build.py`")
    )


def chromium() -> tuple[DoctorState, str]:
    """A browser for the browser tests."""
    for name in ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return DoctorState.OK, path
    return DoctorState.NOTE, "none found; only the browser tests need it (Debian: apt install chromium)"
