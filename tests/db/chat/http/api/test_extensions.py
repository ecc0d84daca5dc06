"""Extensions through the API: of a conversation and of a person; versions, permissions, records, errors."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.models import AgentInstance
from tests.db.chat.conftest import ApiClient
from tools_app.models.extensions import Extension, ExtensionCall

pytestmark = pytest.mark.django_db(transaction=True)

GO = "({ tools: { go: { description: 'Go', execute: async () => 1 } } })"
GO_ON = "({ tools: { go: { description: 'Go on', execute: async () => 2 } } })"
MANIFEST: dict[str, Any] = {
    "name": "walker",
    "version": "1.0",
    "permissions": {"workspace": "read-write", "network": ["api.example.org"]},
}


@pytest.fixture(params=["conversation", "own"])
def base(request: pytest.FixtureRequest, conversation: AgentInstance) -> str:
    """Where extensions are: of Alice's conversation, and of all of hers."""
    return f"/instances/{conversation.pk}/extensions" if request.param == "conversation" else "/extensions"


def test_it_is_loaded_shown_and_unloaded(as_alice: ApiClient, base: str) -> None:
    made = as_alice.send("POST", base, {"manifest": MANIFEST, "source": f"```js\n{GO};\n```"})
    assert made.status_code == 201
    shown = made.json()
    assert (shown["name"], shown["version"], shown["number"], shown["source"]) == ("walker", "1.0", 1, GO)
    assert shown["tools"] == [{"name": "walker_go", "description": "Go"}]
    assert shown["words"][:2] == ["Files: reads, changes and deletes.", "Network: sends data to api.example.org."]
    assert (shown["runs"], shown["can_change"]) == (True, True)
    assert as_alice.get(f"{base}/walker").json() == shown
    (listed,) = as_alice.get(base).json()["items"]
    assert listed == {key: value for key, value in shown.items() if key not in {"manifest", "source"}}
    assert as_alice.send("POST", base, {"manifest": MANIFEST, "source": GO}).json()["code"] == "extension_exists"
    assert as_alice.send("DELETE", f"{base}/walker").status_code == 204
    assert as_alice.send("DELETE", f"{base}/walker").status_code == 404
    assert as_alice.get(f"{base}/walker").status_code == 404
    assert as_alice.get(base).json() == {"items": []}


def test_a_new_version_shows_what_changed(as_alice: ApiClient, base: str) -> None:
    as_alice.send("POST", base, {"manifest": MANIFEST, "source": GO})
    changed = as_alice.send("PATCH", f"{base}/walker", {"source": GO_ON}).json()
    assert (changed["number"], changed["tools"][0]["description"]) == (2, "Go on")
    newer, older = as_alice.get(f"{base}/walker/versions").json()["items"]
    assert (newer["number"], newer["via"], newer["author"], older["diff"]) == (2, "api", "alice", "")
    assert f"-{GO}\n+{GO_ON}\n" in newer["diff"]


@pytest.mark.parametrize(
    "change",
    [
        {"source": GO},
        {"manifest": {**MANIFEST, "version": "9"}},
        {"permissions": {"workspace": "read"}},
        {"enabled": False},
        {"source": GO, "permissions": {}, "enabled": False},
    ],
)
@pytest.mark.parametrize("meanwhile", [{"source": GO_ON}, {"permissions": {"network": ["api.example.org"]}}])
def test_a_change_of_what_is_not_the_present_state_is_a_conflict(
    as_alice: ApiClient, conversation: AgentInstance, meanwhile: Any, change: Any
) -> None:
    base = f"/instances/{conversation.pk}/extensions"
    at = f"{base}/walker"
    read = as_alice.send("POST", base, {"manifest": MANIFEST, "source": GO}).json()
    present = as_alice.send("PATCH", at, {**meanwhile, "revision": read["revision"]}).json()
    assert present["revision"] != read["revision"]
    refused = as_alice.send("PATCH", at, {**change, "revision": read["revision"]})
    assert (refused.status_code, refused.json()["code"]) == (409, "extension_conflict")
    assert refused.json()["data"] == {"revision": present["revision"], "number": present["number"]}
    assert as_alice.get(at).json() == present
    done = as_alice.send("PATCH", at, {**change, "revision": present["revision"]})
    assert done.status_code == 200
    assert as_alice.send("PATCH", at, change).status_code == 200  # without a revision, as before


def test_own_extensions_have_conflicts_too(as_alice: ApiClient) -> None:
    read = as_alice.send("POST", "/extensions", {"manifest": MANIFEST, "source": GO}).json()
    as_alice.send("PATCH", "/extensions/walker", {"source": GO_ON})
    refused = as_alice.send("PATCH", "/extensions/walker", {"source": GO, "revision": read["revision"]})
    assert refused.json()["code"] == "extension_conflict"
    assert as_alice.get("/extensions/walker").json()["source"] == GO_ON


def test_permissions_go_as_far_as_the_manifest(as_alice: ApiClient, base: str) -> None:
    as_alice.send("POST", base, {"manifest": MANIFEST, "source": GO})
    less = as_alice.send("PATCH", f"{base}/walker", {"permissions": {"workspace": "read"}}).json()
    assert (less["granted"]["workspace"], less["granted"]["network"]) == ("read", [])
    assert less["requested"]["network"] == ["api.example.org"]
    for more in (
        {"workspace": "read-write", "messages": "read"},
        {"network": ["other.example.org"]},
        {"network": True},
    ):
        refused = as_alice.send("PATCH", f"{base}/walker", {"permissions": more})
        assert (refused.status_code, refused.json()["code"]) == (422, "extension_invalid")
    again = as_alice.send("PATCH", f"{base}/walker", {"permissions": MANIFEST["permissions"]}).json()
    assert again["granted"] == again["requested"]
    as_alice.send("PATCH", f"{base}/walker", {"permissions": {}})
    kept = as_alice.send("PATCH", f"{base}/walker", {"source": GO_ON}).json()
    assert kept["granted"]["workspace"] == "none"
    asked = {**MANIFEST, "permissions": {"messages": "read"}}
    granted = as_alice.send("PATCH", f"{base}/walker", {"manifest": asked}).json()
    assert (granted["granted"]["messages"], granted["number"]) == ("read", 3)


def test_what_is_not_granted_when_it_is_loaded_is_refused(as_alice: ApiClient, base: str) -> None:
    given = {"manifest": MANIFEST, "source": GO, "permissions": {"workspace": "read"}}
    more = as_alice.send("POST", base, {**given, "permissions": {"messages": "read"}})
    assert (more.status_code, more.json()["code"]) == (422, "extension_invalid")
    assert as_alice.get(base).json() == {"items": []}
    made = as_alice.send("POST", base, given).json()
    assert made["requested"]["network"] == ["api.example.org"]
    assert (made["granted"]["workspace"], made["granted"]["network"]) == ("read", [])
    assert made["words"][0] == "Files: reads."
    other = {**MANIFEST, "version": "2.0"}
    at = f"{base}/walker"
    kept = as_alice.send("PATCH", at, {"manifest": other, "permissions": {"network": ["api.example.org"]}}).json()
    assert (kept["number"], kept["granted"]["workspace"], kept["granted"]["network"]) == (
        2,
        "none",
        ["api.example.org"],
    )
    assert as_alice.send("PATCH", at, {"manifest": other}).json()["granted"]["workspace"] == "read-write"


def test_it_can_be_disabled_and_enabled(as_alice: ApiClient, base: str) -> None:
    as_alice.send("POST", base, {"manifest": MANIFEST, "source": GO})
    off = as_alice.send("PATCH", f"{base}/walker", {"enabled": False}).json()
    assert (off["enabled"], off["runs"]) == (False, False)
    assert as_alice.get(base).json()["items"][0]["runs"] is False
    on = as_alice.send("PATCH", f"{base}/walker", {"enabled": True}).json()
    assert (on["enabled"], on["runs"]) == (True, True)


@pytest.mark.parametrize(
    "change",
    [
        {"manifest": {"name": "walker"}},
        {"manifest": {**MANIFEST, "permissions": {"network": True}}},
        {"manifest": {**MANIFEST, "permissions": {"network": ["not a host"]}}},
        {"manifest": {**MANIFEST, "permissions": {"network": ["*"]}}},
        {"manifest": {**MANIFEST, "permissions": {"everything": True}}},
        {"manifest": {**MANIFEST, "name": "..."}},
        {"manifest": {**MANIFEST, "name": "a/b"}},
        {"manifest": {**MANIFEST, "context": [{"label": "x"}, {"label": "x"}]}},
        {"source": "({ go: { execute() {} } })"},
        {"source": "x".ljust(300_000)},
    ],
)
def test_what_is_no_extension_is_refused(as_alice: ApiClient, conversation: AgentInstance, change: Any) -> None:
    body = {"manifest": MANIFEST, "source": GO, **change}
    refused = as_alice.send("POST", f"/instances/{conversation.pk}/extensions", body)
    assert (refused.status_code, refused.json()["code"]) == (422, "extension_invalid"), refused.content
    assert not Extension.objects.exists()


def test_calls_are_listed_newest_first(as_alice: ApiClient, alice: User, conversation: AgentInstance) -> None:
    base = f"/instances/{conversation.pk}/extensions"
    as_alice.send("POST", base, {"manifest": MANIFEST, "source": GO})
    row = Extension.objects.get()
    for number in range(3):
        ExtensionCall.objects.create(
            extension=row,
            name="walker",
            scope=conversation.pk,
            owner=alice,
            during="walker_go",
            method="readFile",
            subject=f"/{number}",
            is_refused=number == 1,
        )
    page = as_alice.get(f"{base}/walker/calls?limit=2").json()
    assert [(each["about"], each["is_refused"]) for each in page["items"]] == [("/2", False), ("/1", True)]
    rest = as_alice.get(f"{base}/walker/calls?before={page['next_before']}").json()
    assert [each["about"] for each in rest["items"]] == ["/0"]
    assert rest["next_before"] is None
    assert [each["about"] for each in as_alice.get("/extensions/walker/calls").json()["items"]] == ["/2", "/1", "/0"]


def test_a_conversation_shows_what_it_gets_from_elsewhere(
    as_alice: ApiClient, alice: User, make_instance: Callable[..., AgentInstance]
) -> None:
    instance = make_instance(alice)
    as_alice.send("POST", "/extensions", {"manifest": MANIFEST, "source": GO})
    (shown,) = as_alice.get(f"/instances/{instance.pk}/extensions").json()["items"]
    assert (shown["scope"], shown["runs"], shown["can_change"]) == ("user", True, False)
    refused = as_alice.send("PATCH", f"/instances/{instance.pk}/extensions/walker", {"enabled": False})
    assert refused.status_code == 404
    clash = as_alice.send("POST", f"/instances/{instance.pk}/extensions", {"manifest": MANIFEST, "source": GO})
    assert clash.json()["code"] == "extension_exists"
