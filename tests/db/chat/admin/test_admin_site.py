"""The admin's index: six sections as people think of them, in our site and in a host's that mixes them in."""

import re

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.test import Client, RequestFactory

from chat.admin_site import SECTIONS, Sectioned, ThinkAdminSite
from chat.models import ApiToken

pytestmark = pytest.mark.django_db

NAMES = ["Conversations", "Turns", "Tools", "Durable work", "Durable streams", "Memory", "Access"]


class HostSite(Sectioned, admin.AdminSite):
    site_header = "The host"


@pytest.fixture
def superuser(db: None) -> User:
    return User.objects.create_superuser("root")


def headings(client: Client) -> list[str]:
    html = client.get("/admin/").content.decode()
    return re.findall(r'<h2 id="think-[a-z-]+-heading">([^<]+)</h2>', html)


def test_the_index_has_its_sections_in_order(client: Client, superuser: User) -> None:
    client.force_login(superuser)
    assert isinstance(admin.site._wrapped, ThinkAdminSite)  # type: ignore[attr-defined] # a lazy object
    assert headings(client) == NAMES
    html = client.get("/admin/").content.decode()
    assert "Read what was said, correct it" in html
    assert "agent instance" not in html.lower()


def test_every_table_of_ours_stands_in_one_section() -> None:
    tables = [table for section in SECTIONS for table in section.tables]
    ours = {"think_chat", "think_sessions", "think_fibers", "think_tools"}
    registered = {model._meta.label_lower for model in admin.site._registry if model._meta.app_label in ours}
    assert len(tables) == len(set(tables))
    assert registered <= set(tables)


def test_a_section_without_anything_to_see_is_left_out(client: Client) -> None:
    user = User.objects.create_user("staff", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_turn", "view_contextblock"]))
    client.force_login(user)
    assert headings(client) == ["Turns", "Memory"]


def test_who_may_see_nothing_is_told_so_and_others_are_turned_away(client: Client) -> None:
    user = User.objects.create_user("staff", is_staff=True)
    client.force_login(user)
    assert "have permission to view or edit anything" in client.get("/admin/").content.decode()
    client.force_login(User.objects.create_user("alice"))
    assert client.get("/admin/", follow=False).status_code == 302
    assert client.get("/admin/think_chat/agentinstance/").status_code == 302


def test_a_hosts_own_site_shows_its_tables_after_ours(superuser: User) -> None:
    site = HostSite()
    for model in (ApiToken, Permission, Group):
        site.register(model)
    request = RequestFactory().get("/admin/")
    request.user = superuser
    apps = site.get_app_list(request)
    assert [str(app["name"]) for app in apps] == ["Access", "Authentication and Authorization"]
    assert [model["object_name"] for model in apps[0]["models"]] == ["Group", "ApiToken"]
    assert [model["object_name"] for model in apps[1]["models"]] == ["Permission"]
    assert [str(app["name"]) for app in site.get_app_list(request, "think_chat")] == ["Access"]


def test_a_plain_site_lists_ours_below_their_apps(superuser: User) -> None:
    site = admin.AdminSite()
    site.register(ApiToken)
    request = RequestFactory().get("/admin/")
    request.user = superuser
    assert [str(app["name"]) for app in site.get_app_list(request)] == ["Conversations"]


@pytest.mark.parametrize("label", ["think_chat", "think_sessions", "think_fibers", "think_tools", "auth", "axes"])
def test_the_page_of_an_app_is_there(client: Client, superuser: User, label: str) -> None:
    client.force_login(superuser)
    assert client.get(f"/admin/{label}/").status_code == 200
