"""What turns cost, on their rows and on their sessions; budgets that stop them (B5.1, B5.2, B5.3, B5.6)."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import Sum
from django.utils.timezone import now

from chat.errors import BudgetReached
from chat.instances.rows import ensure_instance, find_instance
from chat.instances.spending import session_spending, spending
from chat.llm.scripted import ScriptedModel
from chat.models import AgentInstance, Turn
from fibers.services import requeue_fiber
from fibers.testing import crash_after, run_until_idle
from sessions_app.errors import BudgetInvalid
from sessions_app.messages.usage import SessionUsage, add_usage, set_budget
from sessions_app.models import Session
from tests.db.chat.turns.agents.everyday import MODELS
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room, status_of
from .recovering import mortal

USED = "usage: 1000 100 cached 400 reasoning 50"
CALLING = f'{USED}\ncall tool add {{"a": 1, "b": 2}}\nsay: {{result}}\n{USED}'
COST = Decimal("0.0056")  # 600 at 4, 400 at 1, 100 at 28 a million


@pytest.fixture(autouse=True)
def _prices(settings: Any) -> None:
    settings.THINK_PRICES = {
        "scripted/model": {
            "input": 4,
            "cache_read": 1,
            "output": 28,
            "above_200k": {"input": 8, "cache_read": 2, "output": 40},
        }
    }


async def session_of(room: Room) -> Session:
    return await db(lambda: Session.objects.get(scope=AgentInstance.objects.get(name=room.key.name).pk))


async def test_what_the_provider_counted_is_what_is_kept(make_room: MakeRoom) -> None:
    room = make_room()
    turn = await room.say(f"{USED}\nsay: hi")
    assert (turn.input_tokens, turn.cached_tokens, turn.output_tokens, turn.reasoning_tokens) == (1000, 400, 100, 50)


async def test_exact_cost_of_a_turn_in_its_final_transaction(make_room: MakeRoom) -> None:
    room = make_room()
    turn = await room.say(f"{USED}\nsay: hi")
    assert turn.cost == COST
    session = await session_of(room)
    assert (session.cost, session.input_tokens, session.output_tokens) == (COST, 1000, 100)
    assert session.model_name == turn.model_name
    await room.say(f"{USED}\nsay: again")
    assert (await session_of(room)).cost == 2 * COST


async def test_each_call_has_its_own_tier(make_room: MakeRoom) -> None:
    room = make_room()
    turn = await room.say('usage: 150000 0\ncall tool add {"a": 1, "b": 2}\nsay: {result}\nusage: 150000 0')
    assert turn.step_count == 2
    assert turn.cost == 2 * Decimal("0.6")  # 300,000 in all, and no request beyond 200,000
    steps: list[Any] = await db(
        lambda: list(
            turn.fiber.steps.filter(step_key__startswith="model:").order_by("pk").values_list("value", flat=True)
        )
    )
    found = [(step["finish"], step["usage"]["input_tokens"], Decimal(step["cost"])) for step in steps]
    assert found == [("tool-calls", 150_000, Decimal("0.6")), ("stop", 150_000, Decimal("0.6"))]
    turn = await room.say("usage: 300000 0\nsay: hi")
    assert turn.cost == Decimal("2.4")


@pytest.mark.parametrize("key", ["model:0", "model:1", "final"])
async def test_a_crash_counts_nothing_twice(make_room: MakeRoom, key: str) -> None:
    room = make_room()
    with crash_after(key):
        turn = await room.say(CALLING)
    assert (status_of(turn), turn.cost) == ("completed", 2 * COST)
    assert (await session_of(room)).cost == 2 * COST


async def test_a_turn_that_is_given_up_is_paid_and_run_again_is_paid_once(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_FIBER_MAX_RECOVERIES = 0
    room = make_room()
    with mortal(room, 999, 0, 0, 0, 0, 0, 0):
        turn = await room.say(CALLING)
    assert (status_of(turn), turn.cost) == ("error", COST)
    assert (await session_of(room)).cost == COST
    MODELS["current"] = ScriptedModel()
    assert await db(requeue_fiber, turn.fiber_id)
    await run_until_idle(skip_delays=True)
    turn = await room.turn(turn.pk)
    assert (status_of(turn), turn.cost) == ("completed", 2 * COST)
    assert (await session_of(room)).cost == 2 * COST


async def test_a_turn_that_does_not_go_on_after_a_crash_is_paid_as_far_as_it_came(make_room: MakeRoom) -> None:
    room = make_room("resigned")
    with mortal(room, 999, 0):
        turn = await room.say(CALLING)
    assert (status_of(turn), turn.cost) == ("error", COST)
    assert (await session_of(room)).cost == COST


async def test_a_failed_turn_is_paid_too(make_room: MakeRoom) -> None:
    room = make_room()
    turn = await room.say(f'{USED}\ncall tool add {{"a": 1, "b": 2}}\nsay: x\nerror 400')
    assert turn.cost >= COST
    assert (await session_of(room)).cost == turn.cost


def child_of(room: Room) -> tuple[AgentInstance, AgentInstance]:
    below = room.key.below("plain", "child").below("plain", "grandchild")
    grandchild = ensure_instance(below)
    parent = find_instance(room.key)
    assert parent is not None
    assert grandchild.session_id is not None
    add_usage(grandchild.session_id, SessionUsage(input_tokens=7, cost=Decimal("0.25")))
    return parent, grandchild


async def test_a_conversation_and_its_sub_agents(make_room: MakeRoom) -> None:
    room, other = make_room(), make_room(name="other")
    await room.say(f"{USED}\nsay: hi")
    await other.say(f"{USED}\nsay: not counted here")
    parent, _ = await db(child_of, room)
    used = await db(spending, parent)
    assert (used.own.cost, used.sub_agents.cost, used.total.cost) == (COST, Decimal("0.25"), COST + Decimal("0.25"))
    assert (used.total.input_tokens, used.total.session_count) == (1007, 3)


async def test_no_call_beyond_the_budget(make_room: MakeRoom) -> None:
    room = make_room()
    await room.say(f"{USED}\nsay: hi")
    session = await session_of(room)
    await db(set_budget, session.pk, 2 * COST)
    turn = await room.say(f"{USED}\nsay: still within")
    assert status_of(turn) == "completed"
    asked = len(room.model.requests)
    turn = await room.say("say: too much")
    assert (status_of(turn), turn.error_code) == ("error", "budget_reached")
    assert "its budget of 0.0112" in turn.error_text
    assert len(room.model.requests) == asked
    assert (await room.texts())[-1] == ("user", "say: too much")  # what was said is kept
    await db(set_budget, session.pk, None)
    assert status_of(await room.say("say: on we go")) == "completed"


async def test_a_turn_stops_before_its_next_call(make_room: MakeRoom) -> None:
    room = make_room()
    await room.say("usage: 0 0\nsay: hi")
    await db(set_budget, (await session_of(room)).pk, COST)
    asked = len(room.model.requests)
    turn = await room.say(CALLING)
    assert (status_of(turn), turn.error_code, turn.cost) == ("error", "budget_reached", COST)
    assert len(room.model.requests) == asked + 1
    parts = (await room.transcript())[-1]["parts"]
    assert [part.get("output") for part in parts if "toolCallId" in part] == [3]  # what was done is kept


async def test_sub_agents_count(make_room: MakeRoom) -> None:
    room = make_room()
    await room.say("usage: 0 0\nsay: hi")
    await db(set_budget, (await session_of(room)).pk, Decimal("0.25"))
    parent, _ = await db(child_of, room)
    assert parent.session_id is not None
    assert (await db(session_spending, parent, parent.session_id)).cost == Decimal("0.25")
    assert (await room.say("say: no more")).error_code == "budget_reached"


@pytest.mark.parametrize("amount", ["-1", "NaN", "Infinity", "1e12"])
def test_a_budget_is_an_amount(transactional_db: None, amount: str) -> None:
    session = Session.objects.create()
    with pytest.raises(BudgetInvalid):
        set_budget(session.pk, Decimal(amount))
    session.refresh_from_db()
    assert session.max_cost is None


async def test_a_model_without_a_price_costs_nothing(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_PRICES = {}
    room = make_room()
    assert (await room.say(f"{USED}\nsay: hi")).cost == 0


class PersonBudget:
    """What `docs/howto/costs-and-titles.md` names: a limit of what a person's turns of 30 days cost."""

    limit = 3 * COST

    def check_admission(self, instance: Any) -> None:
        pass

    def check_step(self, instance: Any, steps: Any) -> None:
        turns = Turn.objects.filter(instance__owner=instance.owner_id, accepted_at__gte=now() - timedelta(days=30))
        spent = turns.aggregate(cost=Sum("cost", default=0))["cost"] + steps.cost
        if spent >= self.limit:
            raise BudgetReached("You have reached your budget of these 30 days.")


async def test_a_policy_of_ones_own_is_a_budget_of_each_person(make_room: MakeRoom, settings: Any) -> None:
    """Over all conversations of a person, before each step, and for that person alone."""
    settings.THINK_TURN_POLICIES = [f"{__name__}.PersonBudget"]
    one, other = make_room(name="one"), make_room(name="other")
    assert one.key.owner_id == other.key.owner_id
    assert status_of(await one.say(CALLING)) == "completed"
    second = await other.say(CALLING)
    assert (status_of(second), second.error_code, second.cost) == ("error", "budget_reached", COST)
    assert status_of(await one.say("say: no more")) == "error"
    await db(lambda: AgentInstance.objects.filter(name="other").update(owner=User.objects.create(username="bea")))
    assert status_of(await one.say("say: within it")) == "completed"
