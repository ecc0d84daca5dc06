"""Projects of people: made, changed and removed by their owner alone; conversations in them, and their files."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chat.agents import Assistant
from chat.feed.reading import open_feed
from chat.llm.scripted import ScriptedModel
from chat.members.services import add_member
from chat.models import AgentInstance, FeedChange, Project, Role
from chat.operations.removal import remove_all_of_owner
from chat.people import projects
from sessions_app.transfer.export import export_lines
from tests.db.chat.conftest import ApiClient, say
from tools_app.models import StoredWorkspace, WorkspaceAttachment, WorkspaceEntry

Make = Callable[..., AgentInstance]


def made(client: ApiClient, name: str = "Garden", **more: object) -> dict[str, Any]:
    reply = client.send("POST", "/projects", {"name": name, **more})
    assert reply.status_code == 201, reply.content
    found: dict[str, Any] = reply.json()
    return found


def listed(client: ApiClient, query: str = "") -> list[str]:
    return [row["id"] for row in client.get(f"/instances{query}").json()["items"]]


def put_file(client: ApiClient, project_id: str, path: str, content: bytes) -> Any:
    return client.http.put(
        f"/api/v1/projects/{project_id}/files/content?path={path}", content, content_type="application/octet-stream"
    )


async def whole(reply: Any) -> bytes:
    return b"".join([piece async for piece in reply.streaming_content])


def test_a_project_is_made_changed_and_removed(as_alice: ApiClient) -> None:
    first = made(as_alice, " Garden ", colour="green", instructions="Metric units.", agent="assistant")
    assert (first["name"], first["colour"], first["agent"]) == ("Garden", "green", "assistant")
    assert (first["instructions"], first["conversation_count"], first["max_tokens"]) == ("Metric units.", 0, 2000)
    made(as_alice, "allotment")
    assert [each["name"] for each in as_alice.get("/projects").json()] == ["allotment", "Garden"]
    reply = as_alice.send("PATCH", f"/projects/{first['id']}", {"colour": "teal", "agent": ""})
    assert (reply.json()["colour"], reply.json()["agent"], reply.json()["name"]) == ("teal", "", "Garden")
    assert as_alice.get(f"/projects/{first['id']}").json() == reply.json()
    assert as_alice.send("DELETE", f"/projects/{first['id']}").status_code == 204
    assert as_alice.get(f"/projects/{first['id']}").json()["code"] == "project_not_found"


@pytest.mark.parametrize(
    "values",
    [
        {"name": " "},
        {"name": "x" * 61},
        {"name": "a\nb"},
        {"name": "GARDEN"},
        {"name": "Other", "colour": "beige"},
        {"name": "Other", "agent": "nothing-of-this-name"},
        {"name": "Other", "instructions": "word " * 3000},
        {"name": "Other", "size": 3},
    ],
)
def test_what_is_not_possible_changes_nothing(as_alice: ApiClient, values: dict[str, object]) -> None:
    kept = made(as_alice)
    other = made(as_alice, "Second")
    assert as_alice.send("POST", "/projects", values).status_code == 422
    assert as_alice.send("PATCH", f"/projects/{other['id']}", values).status_code == 422
    assert as_alice.get("/projects").json() == [kept, other]


def test_there_are_only_so_many(as_alice: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projects, "MAX_PROJECTS", 2)
    made(as_alice, "one")
    made(as_alice, "two")
    reply = as_alice.send("POST", "/projects", {"name": "three"})
    assert (reply.status_code, "2 projects" in reply.json()["detail"]) == (422, True)


def test_an_agent_that_is_gone_stays_named(as_alice: ApiClient, alice: User) -> None:
    row = Project.objects.create(owner=alice, name="Old", agent="gone")
    reply = as_alice.send("PATCH", f"/projects/{row.pk}", {"agent": "gone", "name": "Older"})
    assert (reply.status_code, reply.json()["agent"]) == (200, "gone")


def test_a_conversation_begins_in_a_project_moves_and_leaves_it(as_alice: ApiClient) -> None:
    garden, house = made(as_alice), made(as_alice, "House")
    reply = as_alice.send("POST", "/instances", {"agent": "assistant", "project_id": garden["id"]})
    talk = reply.json()["id"]
    assert reply.json()["project_id"] == garden["id"]
    moved = as_alice.send("PATCH", f"/instances/{talk}", {"project_id": house["id"]})
    assert moved.json()["project_id"] == house["id"]
    assert [each["conversation_count"] for each in as_alice.get("/projects").json()] == [0, 1]
    as_alice.send("PATCH", f"/instances/{talk}", {"archived": True})
    assert [each["conversation_count"] for each in as_alice.get("/projects").json()] == [0, 0]
    as_alice.send("PATCH", f"/instances/{talk}", {"archived": False})
    assert as_alice.get(f"/instances/{talk}").json()["project_id"] == house["id"]
    assert as_alice.send("PATCH", f"/instances/{talk}", {"title": "Roses"}).json()["project_id"] == house["id"]
    assert as_alice.send("PATCH", f"/instances/{talk}", {"project_id": None}).json()["project_id"] is None


def test_the_list_is_of_a_project_of_any_or_of_none(as_alice: ApiClient, alice: User, make_instance: Make) -> None:
    garden, house = made(as_alice), made(as_alice, "House")
    roses, roof, loose = (make_instance(alice, name).pk for name in ("roses", "roof", "loose"))
    as_alice.send("POST", "/bulk/move", {"ids": [roses], "project_id": garden["id"]})
    as_alice.send("POST", "/bulk/move", {"ids": [roof], "project_id": house["id"]})
    assert set(listed(as_alice)) == {roses, roof, loose}
    assert listed(as_alice, f"?project={garden['id']}") == [roses]
    assert set(listed(as_alice, "?project=any")) == {roses, roof}
    assert listed(as_alice, "?project=none") == [loose]
    assert listed(as_alice, "?project=prj_never") == []


def test_anothers_project_is_unknown_and_anothers_conversation_stays(
    as_alice: ApiClient, as_bob: ApiClient, alice: User, bob: User, make_instance: Make
) -> None:
    garden, his = made(as_alice), made(as_bob, "His")
    talk, shared = make_instance(alice, "talk"), make_instance(bob, "shared")
    add_member(shared, alice.username, Role.APPROVER, by=bob.pk)
    for reply in (
        as_alice.send("PATCH", f"/instances/{talk.pk}", {"project_id": his["id"], "title": "Taken"}),
        as_alice.send("POST", "/bulk/move", {"ids": [talk.pk], "project_id": his["id"]}),
        as_alice.send("POST", "/instances", {"agent": "assistant", "name": "new", "project_id": his["id"]}),
    ):
        assert (reply.status_code, reply.json()["code"]) == (404, "project_not_found")
    hers = AgentInstance.objects.get(owner=alice)
    assert (hers.name, hers.title, hers.project_id) == ("talk", "", None)
    reply = as_alice.send("POST", "/bulk/move", {"ids": [talk.pk, shared.pk, "never"], "project_id": garden["id"]})
    outcomes = {each["id"]: each["outcome"] for each in reply.json()}
    assert outcomes == {talk.pk: "done", shared.pk: "denied", "never": "missing"}
    shared.refresh_from_db()
    assert shared.project_id is None


def test_members_do_not_learn_of_the_owners_project(
    as_alice: ApiClient, as_bob: ApiClient, alice: User, bob: User, make_instance: Make
) -> None:
    garden, talk = made(as_alice), make_instance(alice, "talk")
    add_member(talk, bob.username, Role.WRITER, by=alice.pk)
    as_alice.send("PATCH", f"/instances/{talk.pk}", {"project_id": garden["id"]})
    assert as_bob.get(f"/instances/{talk.pk}").json()["project_id"] is None
    [line] = as_bob.get("/instances?project=none").json()["items"]
    assert (line["id"], line["project_id"]) == (talk.pk, None)
    assert listed(as_bob, f"?project={garden['id']}") == []
    assert as_bob.send("PATCH", f"/instances/{talk.pk}", {"project_id": None}).status_code == 403


def test_a_sub_agent_stays_with_its_conversation(as_alice: ApiClient, alice: User, make_instance: Make) -> None:
    garden, talk = made(as_alice), make_instance(alice, "talk")
    child = AgentInstance.objects.create(owner=alice, parent=talk, agent="assistant", name="below")
    assert as_alice.send("PATCH", f"/instances/{child.pk}", {"project_id": garden["id"]}).status_code == 422
    reply = as_alice.send("POST", "/bulk/move", {"ids": [child.pk], "project_id": garden["id"]})
    assert reply.json() == [{"id": child.pk, "outcome": "missing"}]


def test_many_are_moved_by_a_fixed_number_of_queries(as_alice: ApiClient, alice: User, make_instance: Make) -> None:
    garden = made(as_alice)
    ids = [make_instance(alice, f"talk{number}").pk for number in range(12)]

    def cost(count: int) -> int:
        with CaptureQueriesContext(connection) as found:
            as_alice.send("POST", "/bulk/move", {"ids": ids[:count], "project_id": garden["id"]})
        return len(found)

    assert cost(2) == cost(12)
    assert set(listed(as_alice, f"?project={garden['id']}")) == set(ids)


def test_the_list_of_projects_costs_the_same_for_many(as_alice: ApiClient, alice: User, make_instance: Make) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as found:
            as_alice.get("/projects")
        return len(found)

    first = made(as_alice, "one")
    before = cost()
    for number in range(5):
        made(as_alice, f"more {number}")
        talk = make_instance(alice, f"talk{number}")
        as_alice.send("PATCH", f"/instances/{talk.pk}", {"project_id": first["id"]})
    assert cost() == before


def test_a_removed_project_keeps_its_conversations(as_alice: ApiClient, alice: User, make_instance: Make) -> None:
    garden = made(as_alice)
    talk, deleted = make_instance(alice, "talk"), make_instance(alice, "deleted")
    as_alice.send("POST", "/bulk/move", {"ids": [talk.pk, deleted.pk], "project_id": garden["id"]})
    as_alice.send("DELETE", f"/instances/{deleted.pk}")
    assert as_alice.send("DELETE", f"/projects/{garden['id']}").status_code == 204
    assert as_alice.get(f"/instances/{talk.pk}").json()["project_id"] is None
    assert as_alice.send("POST", f"/instances/{deleted.pk}/restore").json()["project_id"] is None


def test_a_deleted_conversation_comes_back_into_its_project(
    as_alice: ApiClient, alice: User, make_instance: Make
) -> None:
    garden, talk = made(as_alice), make_instance(alice, "talk")
    as_alice.send("PATCH", f"/instances/{talk.pk}", {"project_id": garden["id"]})
    as_alice.send("DELETE", f"/instances/{talk.pk}")
    assert as_alice.get(f"/projects/{garden['id']}").json()["conversation_count"] == 0
    assert as_alice.send("POST", f"/instances/{talk.pk}/restore").json()["project_id"] == garden["id"]


def test_a_fork_is_in_the_project_and_an_import_in_none(
    as_alice: ApiClient, alice: User, conversation: AgentInstance
) -> None:
    garden = made(as_alice)
    as_alice.send("PATCH", f"/instances/{conversation.pk}", {"project_id": garden["id"]})
    fork = as_alice.send("POST", f"/instances/{conversation.pk}/fork", {"message_id": "a1"}).json()
    assert fork["project_id"] == garden["id"]
    lines = "".join(export_lines(str(conversation.session_id))).encode()
    assert garden["id"].encode() not in lines
    body = {"agent": "assistant", "file": SimpleUploadedFile("export.jsonl", lines)}
    imported = as_alice.http.post("/api/v1/imports", body).json()
    assert as_alice.get(f"/instances/{imported['instance_id']}").json()["project_id"] is None


@pytest.mark.django_db(transaction=True)
def test_a_move_is_in_the_change_feed(as_alice: ApiClient, alice: User, make_instance: Make) -> None:
    garden, talk = made(as_alice), make_instance(alice, "talk")
    open_feed(alice.pk)
    before = FeedChange.objects.count()
    as_alice.send("POST", "/bulk/move", {"ids": [talk.pk], "project_id": garden["id"]})
    assert FeedChange.objects.count() == before + 1
    change = FeedChange.objects.latest("seq")
    assert (change.type, change.key, change.op) == ("conversation", talk.pk, "update")


@pytest.mark.django_db(transaction=True)
def test_files_of_a_project(as_alice: ApiClient, alice: User) -> None:
    garden = made(as_alice)
    at = f"/projects/{garden['id']}/files"
    assert as_alice.get(at).json()["items"] == []
    assert not StoredWorkspace.objects.exists()  # a look makes nothing
    assert put_file(as_alice, garden["id"], "plan.md", b"# Plan").status_code == 201
    assert put_file(as_alice, garden["id"], "deep/notes.txt", b"notes").status_code == 201
    assert put_file(as_alice, garden["id"], "plan.md", b"# Another plan").status_code == 200
    items = as_alice.get(at).json()["items"]
    assert [(each["path"], each["size"]) for each in items] == [("/deep/notes.txt", 5), ("/plan.md", 14)]
    reply = as_alice.get(f"{at}/content?path=plan.md&download=true")
    assert async_to_sync(whole)(reply) == b"# Another plan"
    assert reply["Content-Disposition"].startswith("attachment")
    assert StoredWorkspace.objects.get().owner_id == alice.pk
    assert as_alice.send("DELETE", f"{at}?path=deep/notes.txt").status_code == 204
    for reply in (as_alice.send("DELETE", f"{at}?path=deep/notes.txt"), as_alice.get(f"{at}/content?path=never")):
        assert (reply.status_code, reply.json()["code"]) == (404, "file_failed")
    assert as_alice.get(f"{at}/content?path=deep").status_code == 409


@pytest.mark.django_db(transaction=True)
def test_files_go_with_the_project_and_with_the_person(as_alice: ApiClient, as_bob: ApiClient, alice: User) -> None:
    kept, gone, his = made(as_alice), made(as_alice, "Gone"), made(as_bob)
    for client, row in ((as_alice, kept), (as_alice, gone), (as_bob, his)):
        assert put_file(client, row["id"], "a.txt", b"text").status_code == 201
    as_alice.send("DELETE", f"/projects/{gone['id']}")
    assert put_file(as_alice, gone["id"], "late.txt", b"text").status_code == 404
    assert set(WorkspaceAttachment.objects.values_list("scope", flat=True)) == {kept["id"], his["id"]}
    remove_all_of_owner(alice.pk)
    alice.delete()
    assert WorkspaceAttachment.objects.get().scope == his["id"]
    assert (WorkspaceEntry.objects.count(), Project.objects.get().pk) == (1, his["id"])


@pytest.mark.django_db(transaction=True)
def test_the_context_has_the_project_as_a_piece_of_its_own(
    as_alice: ApiClient, as_bob: ApiClient, alice: User, bob: User, make_instance: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Assistant, "get_model", lambda _agent: ScriptedModel())
    garden, talk = made(as_alice, instructions="Metric units."), make_instance(alice, "talk")
    say(talk, "q", "a")
    assert as_alice.get(f"/instances/{talk.pk}/context").json()["project"] is None
    as_alice.send("PATCH", f"/instances/{talk.pk}", {"project_id": garden["id"]})
    found = as_alice.get(f"/instances/{talk.pk}/context").json()
    assert "Metric units." in found["project"]["text"]
    assert found["project"]["tokens"] > 10
    assert "Metric units." not in found["system"]["text"]
    assert "read_project_file" not in [each["name"] for each in found["tools"]]
    put_file(as_alice, garden["id"], "a.txt", b"text")
    found = as_alice.get(f"/instances/{talk.pk}/context").json()
    assert "read_project_file" in [each["name"] for each in found["tools"]]
    add_member(talk, bob.username, Role.APPROVER, by=alice.pk)
    assert "Metric units." not in json.dumps(as_bob.get(f"/instances/{talk.pk}/context").json())


def test_the_page_embeds_projects_and_what_is_in_them(as_alice: ApiClient, alice: User, make_instance: Make) -> None:
    def boot() -> dict[str, Any]:
        html = as_alice.http.get("/c/new").content.decode()
        found: dict[str, Any] = json.loads(
            html.partition('<script id="boot" type="application/json">')[2].partition("<")[0]
        )
        return found

    loose = make_instance(alice, "loose")
    assert (boot()["instances"]["projects"], boot()["instances"]["in_projects"]) == ([], [])
    garden, talk = made(as_alice), make_instance(alice, "talk")
    as_alice.send("PATCH", f"/instances/{talk.pk}", {"project_id": garden["id"]})
    instances = boot()["instances"]
    assert [each["id"] for each in instances["items"]] == [loose.pk]
    assert [each["id"] for each in instances["in_projects"]] == [talk.pk]
    assert [(each["name"], each["conversation_count"]) for each in instances["projects"]] == [("Garden", 1)]


def test_the_admin_shows_projects(alice: User, as_alice: ApiClient, make_instance: Make) -> None:
    garden, talk = made(as_alice, instructions="Metric units."), make_instance(alice, "talk", title="Roses")
    other = make_instance(alice, "other", title="Elsewhere")
    as_alice.send("PATCH", f"/instances/{talk.pk}", {"project_id": garden["id"]})
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    listed = client.get("/admin/think_chat/project/").content.decode()
    assert "Garden" in listed
    assert f"?project__id__exact={garden['id']}" in listed
    page = client.get(f"/admin/think_chat/project/{garden['id']}/change/").content.decode()
    assert "Metric units." in page
    inside = client.get(f"/admin/think_chat/agentinstance/?project__id__exact={garden['id']}").content.decode()
    assert (talk.pk in inside, other.pk in inside) == (True, False)
    assert "Garden" in client.get(f"/admin/think_chat/agentinstance/{talk.pk}/change/").content.decode()


def test_a_search_is_narrowed_to_a_project(
    as_alice: ApiClient, as_bob: ApiClient, alice: User, bob: User, make_instance: Make
) -> None:
    garden, roses, roof = made(as_alice), make_instance(alice, "roses"), make_instance(alice, "roof")
    say(roses, "q1", "a1")
    say(roof, "q2", "a2")
    add_member(roses, bob.username, Role.READER, by=alice.pk)
    as_alice.send("PATCH", f"/instances/{roses.pk}", {"project_id": garden["id"]})

    def found(client: ApiClient, more: str) -> set[str]:
        return {each["message_id"] for each in client.get(f"/search?q=text&{more}").json()["items"]}

    assert found(as_alice, "") == {"q1", "a1", "q2", "a2"}
    assert found(as_alice, f"project={garden['id']}") == {"q1", "a1"}
    assert found(as_alice, f"project={garden['id']}&agent=nobody") == set()
    assert found(as_bob, "") == {"q1", "a1"}
    assert found(as_bob, f"project={garden['id']}") == set()
