"""The configuration of an instance: typed, checked, cached, and set by those who may (A1.21, C6 26)."""

from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from chat.agent.base import InstanceKey
from chat.errors import ConfigChanged, ConfigInvalid
from chat.instance.handle import AgentHandle
from chat.instance.instance import make_agent
from chat.instances import config
from chat.instances.config import load_config, save_config
from chat.models import AgentInstance
from tests.db.chat.turns.agents.everyday import SEEN, Tone
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, status_of

pytestmark = pytest.mark.django_db(transaction=True)


async def test_none_before_it_was_set_and_replaced_as_a_whole(make_room: MakeRoom) -> None:
    agent = make_agent(make_room("configured").key)
    assert await agent.get_config() is None
    await agent.configure({"a": 1})
    await agent.configure({"b": [2]})
    assert await agent.get_config() == {"b": [2]}
    await agent.configure(None)
    assert await agent.get_config() is None


async def test_typed_by_a_class(make_room: MakeRoom) -> None:
    agent = make_agent(make_room("typed").key)
    assert await agent.get_config() is None
    await agent.configure({"colour": "red"})
    assert await agent.get_config() == Tone(colour="red", level=1)
    await agent.configure(Tone(colour="blue", level=3))
    assert await agent.get_config() == Tone(colour="blue", level=3)


async def test_a_typed_config_inside_configure_session(make_room: MakeRoom) -> None:
    room = make_room("typed")
    assert status_of(await room.say("say: one")) == "completed"
    await make_agent(room.key).configure({"colour": "red"})
    config._cache.clear()  # as after a restart
    assert status_of(await room.say("say: two")) == "completed"
    assert [("config", None), ("config", Tone(colour="red"))] == SEEN


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({}, "colour: Field required"),
        ({"colour": 1}, "colour: Input should be a valid string"),
        ({"colour": "red", "level": 9}, "level: Input should be less than or equal to 5"),
        ({"colour": "red", "tone": 1}, "tone: Extra inputs are not permitted"),
        ("red", "the whole: Input should be an object"),
        ({"colour": "red", "level": float("nan")}, "must be JSON"),
        ({"colour": object()}, "must be JSON"),
    ],
)
async def test_a_refusal_names_the_expected_value_and_changes_nothing(
    make_room: MakeRoom, value: Any, said: str
) -> None:
    agent = make_agent(make_room("typed").key)
    await agent.configure({"colour": "red"})
    with pytest.raises(ConfigInvalid) as refused:
        await agent.configure(value)
    assert said in refused.value.message
    assert "'typed'" in refused.value.message
    assert await agent.get_config() == Tone(colour="red")


@pytest.mark.parametrize("value", [object(), float("inf"), {"a": {1, 2}}, {"a": "x" * 300_000}])
async def test_what_is_no_json_or_too_large_is_refused(make_room: MakeRoom, value: Any) -> None:
    agent = make_agent(make_room("configured").key)
    with pytest.raises(ConfigInvalid):
        await agent.configure(value)
    assert await db(AgentInstance.objects.count) == 0


async def test_a_caller_may_spoil_its_copy(make_room: MakeRoom) -> None:
    agent = make_agent(make_room("configured").key)
    await agent.configure({"list": [1]})
    for _ in range(3):
        found = await agent.get_config()
        assert found == {"list": [1]}
        found["list"].append(2)


async def test_a_parent_sets_its_sub_agents(make_room: MakeRoom) -> None:
    room = make_room("plain")
    child = AgentHandle(room.key).sub_agent("typed", "child")
    await child.configure({"colour": "green"})
    assert await make_agent(room.key.below("typed", "child")).get_config() == Tone(colour="green")
    with pytest.raises(ConfigInvalid):
        await child.configure({"colour": 1})
    assert await child.get_config() == Tone(colour="green")


def test_read_once_and_seen_when_another_process_changes_it(make_room: MakeRoom) -> None:
    key = make_room("typed").key
    save_config(key, {"colour": "red"})
    load_config(key)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert load_config(key) == Tone(colour="red")
    assert len(queries) == 1
    assert '"config"' not in queries[0]["sql"]
    # Another process writes the row and knows nothing of our cache.
    ours = dict(config._cache)
    save_config(key, {"colour": "blue"})
    config._cache.clear()
    config._cache.update(ours)
    assert load_config(key) == Tone(colour="blue")


def test_what_was_rolled_back_is_not_remembered(make_room: MakeRoom) -> None:
    key = make_room("typed").key
    save_config(key, {"colour": "red"})
    with transaction.atomic():
        save_config(key, {"colour": "never"})
        assert load_config(key) == Tone(colour="never")
        transaction.set_rollback(True)
    save_config(key, {"colour": "blue"})
    assert load_config(key) == Tone(colour="blue")


def test_only_over_what_was_read(make_room: MakeRoom) -> None:
    key = make_room("typed").key
    version = save_config(key, {"colour": "red"})
    assert save_config(key, {"colour": "blue"}, version=version) == version + 1
    with pytest.raises(ConfigChanged):
        save_config(key, {"colour": "green"}, version=version)
    assert load_config(key) == Tone(colour="blue")


def test_what_is_stored_may_no_longer_fit_its_class(make_room: MakeRoom) -> None:
    key = make_room("typed").key
    save_config(key, {"colour": "red"})
    AgentInstance.objects.update(config={"old": 1}, config_version=7)
    with pytest.raises(ConfigInvalid, match="The stored configuration of 'typed' does not fit Tone: colour"):
        load_config(key)


def test_the_cache_is_bounded(make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "MAX_CACHED", 2)
    first = make_room("configured").key
    keys = [InstanceKey(owner_id=first.owner_id, agent="configured", name=str(number)) for number in range(4)]
    for key in keys:
        save_config(key, key.name)
        load_config(key)
    assert len(config._cache) == 2
    assert [load_config(key) for key in keys] == ["0", "1", "2", "3"]
