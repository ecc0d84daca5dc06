"""Inboxes of agents in the admin: what is sent there wakes the agent, and an agent is paused."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.instances.rows import ensure_instance
from chat.models import AgentMessage, Turn
from chat.turns.inbox.pausing import is_paused
from tests.db.chat.notes import keys
from tests.db.chat.staff import staff

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("notes")]
URL = "/admin/think_chat/agentmessage/"
LOOKS = ("view_agentmessage", "view_agentinstance", "view_turn", "view_message")


def form(of: Any, **changes: str) -> dict[str, str]:
    return {"room": of.pk, "target": of.agent, "text": "say: <b>hi</b>", **changes}


def test_a_message_that_is_sent_wakes_the_agent(alice: User) -> None:
    room = ensure_instance(keys(alice)[0])
    _, client = staff(*LOOKS, "add_agentmessage")
    assert f'value="{room.pk}"' in client.get(f"{URL}add/?room={room.pk}").content.decode()
    listed = client.post(f"{URL}add/", form(room), follow=True).content.decode()
    row = AgentMessage.objects.get()
    assert (row.sender, row.target, row.content) == ("", room.agent, "say: <b>hi</b>")
    assert "&lt;b&gt;hi" in listed
    assert "Waits" in listed
    turn = Turn.objects.get()
    assert (turn.instance_id, turn.options["inbox"]) == (room.pk, True)
    page = client.get(f"{URL}{row.pk}/change/").content.decode()
    assert f"agentinstance/{room.pk}/" in page
    conversation = client.get(f"/admin/think_chat/agentinstance/{room.pk}/change/").content.decode()
    assert f"{URL}?q={room.pk}" in conversation


def test_what_is_refused_is_said_on_the_form(alice: User) -> None:
    room = ensure_instance(keys(alice)[0])
    _, client = staff(*LOOKS, "add_agentmessage")
    assert "no such conversation" in client.post(f"{URL}add/", form(room, room="ins_none")).content.decode()
    assert "valid choice" in client.post(f"{URL}add/", form(room, target="no-agent")).content.decode()
    assert not AgentMessage.objects.exists()


def test_who_may_not_send_or_read_does_neither(alice: User) -> None:
    room = ensure_instance(keys(alice)[0])
    AgentMessage.objects.create(room=room, target=room.agent, content="a secret")
    _, client = staff("view_agentmessage", "view_agentinstance")
    assert client.post(f"{URL}add/", form(room)).status_code == 403
    listed = client.get(URL).content.decode()
    assert "Waits" in listed
    assert "a secret" not in listed


def test_staff_pause_an_agent_and_let_it_go_on(alice: User) -> None:
    room = ensure_instance(keys(alice)[0])
    row = AgentMessage.objects.create(room=room, target=room.agent, content="x")
    _, client = staff(*LOOKS, "change_agentmessage")
    chosen = {"_selected_action": [row.pk]}
    assert "1 agent was paused" in client.post(URL, {"action": "pause_agents", **chosen}, follow=True).content.decode()
    assert is_paused(room)
    assert "0 agents" in client.post(URL, {"action": "pause_agents", **chosen}, follow=True).content.decode()
    said = client.post(URL, {"action": "let_agents_go_on", **chosen}, follow=True).content.decode()
    assert "1 agent goes on" in said
    assert not is_paused(room)
