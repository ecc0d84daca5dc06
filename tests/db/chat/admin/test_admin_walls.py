"""The first page of the admin names the walls that workers lack around code of models, while they run."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
import redis
from django.contrib.auth.models import Permission, User
from django.test import Client

from chat.http.health import note_worker
from chat.operations.missing_walls import WALLS_KEY, missing_walls
from tests.fewer_walls import without_namespaces
from thinkproject.run.prepare import prepare
from tools_app.sandbox import starting

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _not_looked_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "_found", [])


def page_of(*codenames: str) -> str:
    user = User.objects.create_user("staff", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(user)
    return client.get("/admin/").content.decode()


def test_a_wall_that_a_worker_lacks_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_namespaces(monkeypatch, tmp_path)
    starting.look_soon().join()
    note_worker()
    assert "code of models runs without a network namespace" in page_of("view_execution")


def test_a_worker_that_runs_no_code_for_a_missing_wall_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Any
) -> None:
    without_namespaces(monkeypatch, tmp_path)
    settings.THINK_SANDBOX_MAY_LACK = "none"
    starting.look_soon().join()
    note_worker()
    assert "code of models does not run, as a wall is missing" in page_of("view_execution")


def test_people_who_may_not_see_code_read_nothing_of_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_namespaces(monkeypatch, tmp_path)
    starting.look_soon().join()
    note_worker()
    assert "code of models" not in page_of("view_turn")


def test_a_worker_with_all_walls_and_one_that_is_gone_are_not_named(redis_url: str) -> None:
    note_worker()
    with redis.Redis.from_url(redis_url) as client:
        client.hset(WALLS_KEY, "gone:1", json.dumps({"at": time.time() - 3600, "runs": True, "lacks": ["network"]}))
        assert missing_walls() == []
        assert client.hgetall(WALLS_KEY) == {}


def test_without_redis_nothing_is_named_and_the_page_is_there(settings: Any) -> None:
    settings.REDIS_URL = "unix:///nowhere.sock"
    assert "think-tools-heading" in page_of("view_execution")


def test_the_start_of_the_product_has_a_sentence_about_a_missing_wall(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without_namespaces(monkeypatch, tmp_path)
    assert prepare()["walls"] == (
        "Code of models runs without a network namespace (Deno alone keeps it off the network)."
    )
