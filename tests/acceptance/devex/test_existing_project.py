"""Agents in a Django project that a user has: installed from a wheel, below a prefix, with a user model of its own,
without our settings."""

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from chat.client import ChatClient
from tests.acceptance.devex import project as written
from tests.acceptance.devex.project import ROOT, Project, install_wheel, make_project
from tests.acceptance.product import wait_for

CRASH_TESTS = """\
import pytest

from chat.llm.scripted import ScriptedModel
from chat.think import Think, tool
from helpdesk.agents import HelpDesk
from people.models import Person


@tool
def hire(name: str) -> str:
    '''Hire a person.'''
    Person.objects.create(email=f"{name}-{Person.objects.count()}@example.com")
    return f"{name} is hired"


class Hirer(Think):
    workspace_tools = False

    def get_model(self):
        return "default"

    def get_tools(self):
        return [hire]


def test_the_desk_survives(crash_everywhere):
    crash_everywhere.run(HelpDesk, "Hi")


def test_what_is_done_twice_is_named(crash_everywhere):
    with pytest.raises(AssertionError, match="Tool 'hire' ran 2 times"):
        crash_everywhere.run(
            Hirer,
            'call tool hire {"name": "bob"} id=one\\nsay: Done.',
            effects=lambda: [p.email.partition("-")[0] for p in Person.objects.exclude(email__contains="think")],
        )
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Migrated, with one person, after one turn."""
    project = make_project(tmp_path_factory.mktemp("host"), install_wheel(tmp_path_factory.mktemp("wheel")))
    project.manage("makemigrations", "people")
    project.manage("migrate", "--verbosity", "0")
    make = "from people.models import Person; Person.objects.create_user('ann@example.com', 'x')"
    project.manage("shell", "--verbosity", "0", "-c", make)
    said = project.manage("agent_chat", "help-desk", "--user", "ann@example.com", "--inline", lines="Hi\n")
    assert said == "Hello from the host.\n"
    return project


@pytest.fixture(scope="module")
def ann(project: Project) -> dict[str, str]:
    """Ann's session cookie and token."""
    found: dict[str, str] = json.loads(project.run("sign_in.py").stdout)
    return found


@pytest.fixture(scope="module")
def port(project: Project) -> Iterator[int]:
    """The project's own web server, with its own ASGI application."""
    with socket.create_server(("127.0.0.1", 0)) as listener, (project.folder / "web.log").open("wb") as log:
        number: int = listener.getsockname()[1]
        server = subprocess.Popen(
            [sys.executable, "-m", "daphne", "--fd", str(listener.fileno()), "host.asgi:application"],
            cwd=project.folder,
            env=project.environ,
            stdout=log,
            stderr=log,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
        try:
            wait_for(lambda: answers(number), seconds=30, what="the project's server")
            yield number
        finally:
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def answers(port: int) -> bool:
    try:
        return get(port, "/desk/health/live")[0] == 200
    except OSError:
        return False


def get(port: int, path: str, **headers: str) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, response.headers.get("Location", ""), response.read().decode()
    finally:
        connection.close()


def test_a_conversation_is_crashed_by_the_fixture_that_the_wheel_brings(project: Project) -> None:
    project.write({"helpdesk/test_crashes.py": CRASH_TESTS})
    words = ("-m", "pytest", "helpdesk", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:schemathesis")
    done = project.run(*words)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_the_checks_pass_and_no_migration_is_missing(project: Project) -> None:
    assert "no issues" in project.manage("check")
    assert "No changes detected" in project.manage("makemigrations", "--check", "--dry-run")


def test_the_pages_live_below_the_prefix(port: int, ann: dict[str, str]) -> None:
    assert get(port, "/")[2] == "the host's own page"
    status, location, _ = get(port, "/desk/")
    assert (status, location) == (302, "/desk/sign-in/?next=/desk/")
    assert get(port, location)[0] == 200
    status, _, page = get(port, "/desk/", Cookie=f"sessionid={ann['cookie']}")
    assert status == 200
    found = re.search(r'<script id="boot" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    boot: Any = json.loads(found.group(1))
    assert boot["urls"] == {
        "home": "/desk/",
        "api": "/desk/api",
        "agents": "/desk/agents/",
        "files": "/desk/api/files/",
        "logout": "/desk/sign-out/",
        "previews": "/desk/preview/",
        "admin": "",
        "docs": "",
        "worker": "/desk/worker.js",
    }
    assert [part["text"] for part in boot["messages"]["items"][-1]["parts"] if part["type"] == "text"] == [
        "Hello from the host."
    ]


def test_the_wheel_brings_what_the_pages_load(project: Project, port: int, ann: dict[str, str]) -> None:
    where = project.run("-c", "import chat; print(chat.__file__)").stdout
    assert where.startswith(str(project.library))
    assert project.library != ROOT
    page = get(port, "/desk/", Cookie=f"sessionid={ann['cookie']}")[2]
    loaded = re.findall(r'(?:src|href)="/static/([^"]+)"', page)
    assert {name.partition(".")[0] for name in loaded} >= {"think/app", "think/icon", "think/main"}
    [script] = [name for name in loaded if name.startswith("think/main.")]
    for name in [
        *loaded,
        f"{script}.br",
        f"{script}.gz",
        f"{script}.map",
        "think_sessions/admin.css",
        "think_chat/api.js",
        "think_chat/api.css",
    ]:
        assert (
            project.manage("findstatic", "--first", "--verbosity", "0", name).strip().startswith(str(project.library))
        )
    tree = {path.relative_to(project.library).parts[0] for path in project.library.iterdir()}
    assert not tree & {"templates", "static", "tests", "requirements"}
    assert (project.library / "chat" / "py.typed").exists()


def test_who_is_signed_in_lands_on_the_conversations(port: int, ann: dict[str, str]) -> None:
    assert get(port, "/desk/sign-in/", Cookie=f"sessionid={ann['cookie']}")[:2] == (302, "/desk/")


def test_the_api_lives_below_the_prefix(port: int, ann: dict[str, str]) -> None:
    token = f"Bearer {ann['token']}"
    agents = json.loads(get(port, "/desk/api/agents", Authorization=token)[2])
    assert "help-desk" in [agent["name"] for agent in agents]
    messages = json.loads(get(port, "/desk/agents/help-desk/terminal/get-messages", Authorization=token)[2])
    assert [message["role"] for message in messages] == ["user", "assistant"]


def test_the_documentation_of_the_api_comes_from_the_wheel(port: int, ann: dict[str, str]) -> None:
    status, _, page = get(port, "/desk/api/docs", Cookie=f"sessionid={ann['cookie']}")
    assert status == 200
    assert "/static/think_chat/api.js" in page
    assert "/desk/api/instances" in page


def test_the_admin_works_in_the_hosts_own(project: Project, port: int, ann: dict[str, str]) -> None:
    promote = "from people.models import Person; Person.objects.update(is_staff=True, is_superuser=True)"
    project.manage("shell", "--verbosity", "0", "-c", promote)
    cookie = f"sessionid={ann['cookie']}"
    index = get(port, "/admin/", Cookie=cookie)[2]
    assert "Durable work" in index
    conversations = get(port, "/admin/think_chat/agentinstance/", Cookie=cookie)[2]
    found = re.search(r'href="(/admin/think_chat/agentinstance/ins_[^"]+/change/)', conversations)
    assert found is not None
    page = get(port, found[1], Cookie=cookie)[2]
    assert "Hello from the host." in page
    assert "<strong>ann@example.com</strong>" in page


def test_an_uploaded_file_has_an_address_that_answers(port: int, ann: dict[str, str]) -> None:
    boundary = "b0undary"
    part = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    headers = {
        "Authorization": f"Bearer {ann['token']}",
        "Content-Type": f"multipart/form-data; boundary={boundary}",
    }
    connection.request("POST", "/desk/api/files", body=f"{part}plain words\r\n--{boundary}--\r\n", headers=headers)
    response = connection.getresponse()
    assert response.status == 201
    url = json.loads(response.read())["url"]
    connection.close()
    assert url.startswith("/desk/api/files/att_")
    assert get(port, url, Authorization=headers["Authorization"])[2] == "plain words"


def test_a_socket_below_the_prefix_gets_its_first_frames(port: int, ann: dict[str, str]) -> None:
    async def talk() -> tuple[str, str] | None:
        async with ChatClient(
            f"http://127.0.0.1:{port}/desk", agent="help-desk", name="terminal", token=ann["token"]
        ) as chat:
            assert chat.messages == await chat.get_messages()
            return chat.identity

    assert asyncio.run(talk()) == ("help-desk", "terminal")


def test_the_doctor_runs_without_our_settings(project: Project) -> None:
    done = project.run("manage.py", "think_doctor")
    assert "Traceback" not in done.stderr
    assert re.search(r"ok +database", done.stdout)


def test_a_started_agent_has_a_test_that_passes(project: Project) -> None:
    said = project.manage("start_agent", "second_agent")
    assert "Add 'second_agent' to INSTALLED_APPS." in said
    assert "THINK_APPS" not in said
    done = project.run("manage.py", "test", "second_agent")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Ran 1 test" in done.stderr
    agents = project.folder / "second_agent" / "tests" / "test_agents.py"
    agents.write_text(agents.read_text(encoding="utf-8").replace('reply.text, "Hello', 'reply.text, "Bye'))
    assert project.run("manage.py", "test", "second_agent").returncode == 1


def test_the_how_to_shows_the_files_that_are_tested() -> None:
    page = (ROOT / "docs" / "howto" / "use-in-your-project.md").read_text(encoding="utf-8")
    for text in (written.URLS, written.ASGI):
        assert text.strip() in page
    for line in ('"APP_DIRS": True', '"transaction_mode": "IMMEDIATE"', '"sessions_app"'):
        assert line in page
        assert line in written.SETTINGS
