"""Extensions in the admin: inspected, edited and reloaded, disabled, disabled everywhere, given to everybody."""

import json
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from chat.admin.tools.highlighting import highlighted
from chat.models import AgentInstance
from tests.db.chat.staff import staff
from tools_app.extensions.loaded import load_stored
from tools_app.extensions.services import Author, Holder, holder_of, load_extension, update_extension
from tools_app.models.extensions import BannedSource, Extension, ExtensionAuthor, ExtensionCall, ExtensionLevel

URL = "/admin/think_tools/extension/"
SOURCE = "({ tools: { go: { description: '<b>Go</b>', execute: async () => 1 /* one */ } } })"
MANIFEST: dict[str, Any] = {"name": "walker", "version": "1.0", "permissions": {"workspace": "read-write"}}

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def extension(alice: User, conversation: AgentInstance) -> Extension:
    holder = Holder(level=ExtensionLevel.INSTANCE, owner_id=alice.pk, scope=conversation.pk)
    author = Author(via=ExtensionAuthor.MODEL, user_id=alice.pk)
    async_to_sync(load_extension)(holder, MANIFEST, SOURCE, author=author)
    async_to_sync(update_extension)(holder, "walker", source=SOURCE.replace("one", "two"), author=author)
    row = Extension.objects.get()
    for is_refused in (False, True):
        ExtensionCall.objects.create(
            extension=row,
            name="walker",
            scope=conversation.pk,
            owner=alice,
            during="walker_go",
            method="readFile",
            subject="/<i>x</i>",
            is_refused=is_refused,
            error="may not" if is_refused else "",
        )
    return row


def act(client: Any, action: str, row: Extension, *, url: str = URL) -> str:
    reply = client.post(url, {"action": action, "_selected_action": [str(row.pk)]}, follow=True)
    return str(reply.content.decode())


def test_it_is_shown_with_its_source_permissions_calls_and_versions(extension: Extension) -> None:
    _, client = staff("view_extension", "view_extensionversion", "view_agentinstance")
    page = client.get(f"{URL}{extension.pk}/change/").content.decode()
    assert '<span class="think-code-keyword">async</span>' in page
    assert '<span class="think-code-comment">/* two */</span>' in page
    assert "Files: reads, changes and deletes." in page
    assert "&lt;b&gt;Go&lt;/b&gt;" in page
    assert "<b>Go</b>" not in page
    assert "/&lt;i&gt;x&lt;/i&gt;" in page
    assert "Refused" in page
    assert "may not" in page
    assert "/* one */" in page.replace("+({", "").split("-({")[1]
    listed = client.get(URL).content.decode()
    assert "walker" in listed
    assert "A talk" in listed
    calls = client.get("/admin/think_tools/extensioncall/")
    assert calls.status_code == 403


def test_calls_are_listed_with_what_was_refused(extension: Extension) -> None:
    _, client = staff("view_extensioncall")
    page = client.get("/admin/think_tools/extensioncall/?is_refused__exact=1").content.decode()
    assert page.count("Refused") >= 1
    assert ">Made<" not in page


def test_staff_edit_and_reload_it(extension: Extension) -> None:
    user, client = staff("view_extension", "change_extension")
    page = client.get(f"{URL}{extension.pk}/edit/").content.decode()
    assert "&quot;walker&quot;" in page
    data = {
        "manifest": json.dumps({**MANIFEST, "permissions": {}}),
        "source": SOURCE.replace("one", "three"),
        "revision": extension.revision,
    }
    assert client.post(f"{URL}{extension.pk}/edit/", data).status_code == 302
    extension.refresh_from_db()
    version = extension.versions.get(number=3)
    assert (extension.number, extension.granted["workspace"]) == (3, "none")
    assert (version.via, version.author) == ("admin", user)
    data["revision"] = extension.revision
    for wrong in ({"source": "({ go: 1 })"}, {"manifest": "{"}, {"manifest": "[]"}, {"manifest": '{"name": "other"}'}):
        reply = client.post(f"{URL}{extension.pk}/edit/", {**data, **wrong})
        assert reply.status_code == 200
        assert "error" in reply.content.decode()
    extension.refresh_from_db()
    assert extension.number == 3


def test_an_edit_of_a_version_that_is_not_the_present_one_changes_nothing(extension: Extension) -> None:
    _, client = staff("view_extension", "change_extension")
    url = f"{URL}{extension.pk}/edit/"
    assert f'value="{extension.revision}"' in client.get(url).content.decode()
    data = {"manifest": json.dumps(MANIFEST), "source": SOURCE.replace("one", "mine"), "revision": extension.revision}
    theirs = Author(via=ExtensionAuthor.MODEL, user_id=extension.owner_id)
    async_to_sync(update_extension)(
        holder_of(extension), "walker", source=SOURCE.replace("one", "theirs"), author=theirs
    )
    page = client.post(url, data).content.decode()
    assert "Another person has changed this extension." in page
    assert "/* theirs */" in page.split("<pre")[1]
    assert "/* mine */" in page.split("<textarea")[2]
    extension.refresh_from_db()
    assert extension.number == 3
    assert f'value="{extension.revision}"' in page
    assert client.post(url, {**data, "revision": extension.revision}).status_code == 302
    assert extension.versions.get(number=4).source == SOURCE.replace("one", "mine")


def test_who_may_only_look_changes_nothing(extension: Extension) -> None:
    _, client = staff("view_extension")
    assert client.get(f"{URL}{extension.pk}/edit/").status_code == 403
    assert client.post(f"{URL}load/", {"manifest": json.dumps(MANIFEST), "source": SOURCE}).status_code == 403
    for action in ("disable", "disable_everywhere", "unload", "give_to_everybody"):
        act(client, action, extension)
    extension.refresh_from_db()
    assert extension.enabled
    assert not BannedSource.objects.exists()


def test_staff_disable_and_enable_it(extension: Extension, alice: User, conversation: AgentInstance) -> None:
    _, client = staff("view_extension", "change_extension")
    assert "1 extensions are disabled" in act(client, "disable", extension)
    assert load_stored(alice.pk, conversation.pk) == []
    act(client, "enable", extension)
    assert len(load_stored(alice.pk, conversation.pk)) == 1


def test_a_source_is_disabled_everywhere_at_once(
    extension: Extension, alice: User, bob: User, conversation: AgentInstance
) -> None:
    source = extension.versions.get(number=2).source
    author = Author(via=ExtensionAuthor.API, user_id=bob.pk)
    async_to_sync(load_extension)(
        Holder(level=ExtensionLevel.USER, owner_id=bob.pk), {"name": "mine", "version": "1"}, source, author=author
    )
    user, client = staff("view_extension", "change_extension", "view_bannedsource", "change_bannedsource")
    assert "Disabled everywhere" in act(client, "disable_everywhere", extension)
    assert load_stored(alice.pk, conversation.pk) == load_stored(bob.pk, "") == []
    ban = BannedSource.objects.get()
    assert (ban.reason, ban.banned_by) == ("walker", user)
    assert ban.sha256 in client.get("/admin/think_tools/bannedsource/").content.decode()
    reply = client.post(
        "/admin/think_tools/bannedsource/", {"action": "allow", "_selected_action": [str(ban.pk)]}, follow=True
    )
    assert "1 sources may run again" in reply.content.decode()
    assert len(load_stored(bob.pk, "")) == 1


def test_one_is_given_to_everybody(extension: Extension, bob: User) -> None:
    _, client = staff("view_extension", "change_extension")
    assert "1 extensions are everybody" in act(client, "give_to_everybody", extension)
    (found,) = load_stored(bob.pk, "")
    assert (found.name, found.level) == ("walker", "site")
    assert "already loaded" in act(client, "give_to_everybody", extension)


def test_staff_load_one_for_a_user_or_for_everybody(alice: User, bob: User) -> None:
    _, client = staff("view_extension", "change_extension")
    data = {"manifest": json.dumps(MANIFEST), "source": SOURCE}
    assert "no such user" in client.post(f"{URL}load/", {**data, "user": "nobody"}).content.decode()
    assert client.post(f"{URL}load/", {**data, "user": "alice"}).status_code == 302
    assert [each.level for each in load_stored(alice.pk, "")] == ["user"]
    assert load_stored(bob.pk, "") == []
    other = json.dumps({**MANIFEST, "name": "other"})
    assert client.post(f"{URL}load/", {**data, "manifest": other}).status_code == 302
    assert [each.name for each in load_stored(bob.pk, "")] == ["other"]


def test_it_is_unloaded_and_its_calls_stay(extension: Extension) -> None:
    _, client = staff("view_extension", "change_extension", "delete_extension")
    assert "1 extensions were unloaded" in act(client, "unload", extension)
    assert not Extension.objects.exists()
    assert ExtensionCall.objects.filter(extension=None, name="walker").count() == 2


@pytest.mark.parametrize(
    "source",
    ["", "</pre><script>alert(1)</script>", "'\\'</span>' // <x>", "(" * 20_000, "({ a: `${'<b>'}` })", "\ud800"],
)
def test_any_source_is_shown_and_none_is_run(source: str) -> None:
    shown = highlighted(source)
    assert "<script" not in shown
    assert "<b>" not in shown
    assert "<x>" not in shown
