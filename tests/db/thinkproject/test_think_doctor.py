"""The doctor names what is wrong, and says nothing secret."""

import json
import socket
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from pytest_django import Settings

from chat.agent import declared
from chat.durable_tools import declared as durable_tools
from chat.management.commands.think_doctor import DOCTOR_FOLDER
from chat.think import Origin, Relaxed, Think, client_tool
from chat.tools.durable import make_durable_tool
from fibers.core.schedules.timing import Timing
from fibers.models.served import ExecutorKind
from fibers.queue.presence import note_served
from fibers.schedules.services import ScheduleDraft, create_schedule
from fibers.services import start_fiber
from tests.fewer_walls import without_namespaces
from tests.workers_seen import seen_worker
from thinkproject.kernel.object_storage import object_storage

pytestmark = pytest.mark.django_db


def _examine() -> tuple[int, dict[str, dict[str, str]]]:
    output, code = StringIO(), 0
    try:
        call_command("think_doctor", "--json", stdout=output)
    except SystemExit as ended:
        code = int(ended.code or 0)
    found = [json.loads(line) for line in output.getvalue().splitlines()]
    return code, {finding["name"]: finding for finding in found}


@pytest.fixture(autouse=True)
def _well(settings: Settings) -> None:
    settings.THINK_MODEL = "openai/some-model"
    settings.OPENAI_API_KEY = "sk-canary"
    with socket.create_server(("127.0.0.1", 0)) as server:
        settings.PORT = server.getsockname()[1]


def test_a_sound_installation_has_exit_code_0(redis_url: str) -> None:
    with seen_worker(redis_url):
        code, found = _examine()
    assert code == 0, found
    assert {found[name]["state"] for name in ("python", "data dir", "database", "redis server", "worker")} == {"ok"}
    assert found["web server"]["state"] == "note"


def test_an_agent_that_weakens_the_guard_is_noted_with_its_reason() -> None:
    class Wiki(Think):
        injection_guard = Relaxed(reason="Reads our own wiki only.", trusts=[Origin.WEB])

    try:
        _, found = _examine()
    finally:
        declared.classes.pop(Wiki.route_name())
    assert found["injection guard"]["state"] == "note"
    assert "wiki: Reads our own wiki only." in found["injection guard"]["detail"]


def test_work_without_its_function_is_noted_by_name() -> None:
    assert _examine()[1]["background work"]["state"] == "ok"
    for number in range(2):
        start_fiber("chat.agent_fiber:assistant.gone", number)
    found = _examine()[1]["background work"]
    assert found["state"] == "note"
    assert "2 wait for a deploy" in found["detail"]
    assert "chat.agent_fiber:assistant.gone (2)" in found["detail"]


def test_schedules_that_are_broken_are_noted_with_the_reason() -> None:
    assert _examine()[1]["schedules"] == {"name": "schedules", "state": "ok", "detail": "none is broken"}
    draft = ScheduleDraft(scope="one", timing=Timing.every(60), function="gone", error="It has no method “tidy”.")
    schedule, _is_new = create_schedule(draft)
    found = _examine()[1]["schedules"]
    assert found["state"] == "note"
    assert f"1 broken, which do not run: {schedule.pk}: It has no method “tidy”." in found["detail"]


def test_pages_that_were_not_built_are_noted(settings: Settings) -> None:
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]  # does not look into apps
    _, found = _examine()
    assert found["pages"] == {"name": "pages", "state": "note", "detail": found["pages"]["detail"]}
    assert "static/build.py" in found["pages"]["detail"]


def test_a_missing_worker_is_wrong() -> None:
    code, found = _examine()
    assert code == 1
    assert "none was seen lately" in found["worker"]["detail"]


def test_a_silent_redis_is_wrong(settings: Settings, tmp_path: Path) -> None:
    settings.REDIS_URL = f"unix://{tmp_path}/none.sock"
    code, found = _examine()
    assert code == 1
    assert found["redis server"]["state"] == found["worker"]["state"] == "wrong"


@pytest.fixture
def occupied_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.listen(8)
        yield server.getsockname()[1]


def test_a_port_in_use_is_an_error(settings: Settings, occupied_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chat.management.commands.think_doctor.SECONDS", 0.2)
    settings.PORT = occupied_port
    assert "another program listens" in _examine()[1]["web server"]["detail"]


def test_a_model_server_that_does_not_answer_is_wrong(settings: Settings) -> None:
    settings.OPENAI_BASE_URL = f"http://127.0.0.1:{settings.PORT}/v1"
    code, found = _examine()
    assert code == 1
    assert "does not answer" in found["model"]["detail"]
    assert "sk-canary" not in json.dumps(found)


def test_a_data_directory_that_cannot_be_written_is_wrong(settings: Settings, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path / "file"
    settings.DATA_DIR.write_text("not a directory", encoding="utf-8")
    assert "cannot be written" in _examine()[1]["data dir"]["detail"]


def test_storage_that_cannot_keep_files_is_wrong(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    settings.STORAGES = {
        **settings.STORAGES,
        "think": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": tmp_path / "file" / "below"},
        },
    }
    code, found = _examine()
    assert code == 1
    assert "cannot keep large files" in found["file storage"]["detail"]


def test_storage_is_tried_and_left_as_it_was() -> None:
    assert _examine()[1]["file storage"]["state"] == "ok"
    assert object_storage().listdir(DOCTOR_FOLDER)[1] == []


def test_a_wall_that_is_missing_around_code_is_noted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_namespaces(monkeypatch, tmp_path)
    found = _examine()[1]["code: javascript"]
    assert found["state"] == "note"
    assert "Code of models runs without a network namespace" in found["detail"]


def test_code_that_does_not_run_for_a_missing_wall_is_noted(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without_namespaces(monkeypatch, tmp_path)
    settings.THINK_SANDBOX_MAY_LACK = "none"
    found = _examine()[1]["code: javascript"]
    assert found["state"] == "note"
    assert "a wall is missing (" in found["detail"]
    assert "no network" in found["detail"] or "another user" in found["detail"]


def test_each_kind_of_code_is_told_with_its_walls_or_its_reason(settings: Settings, tmp_path: Path) -> None:
    settings.THINK_SANDBOX_PACKAGES_DIR = str(tmp_path)
    found = _examine()[1]
    assert found["code: javascript"]["state"] == "ok"
    assert "Deno without permissions" in found["code: javascript"]["detail"]
    assert found["code: python"]["state"] == "note"  # works without
    assert "install_sandbox_python" in found["code: python"]["detail"]


def test_tools_that_no_executor_has_are_noted() -> None:
    make_durable_tool(client_tool("weigh", "Weigh."), executor="moon")
    try:
        found = _examine()[1]["executors"]
        assert (found["state"], "moon/weigh" in found["detail"]) == ("note", True)
        note_served(["chat.tool:moon/weigh"], ExecutorKind.PROGRAM)
        assert _examine()[1]["executors"]["state"] == "ok"
    finally:
        durable_tools.forget("moon/weigh")
