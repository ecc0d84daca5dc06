"""What other apps call."""

import pytest
from django.contrib.auth.models import User

from fibers import selectors, services
from fibers.core.states import FiberEvent, FiberStatus
from fibers.errors import FiberError, FiberKeyTaken, FiberNotFound
from fibers.models import Fiber, FiberStep
from fibers.queue import leases
from fibers.queue.enqueue import FiberSpec, insert_fiber
from fibers.queue.leases import Settlement
from fibers.registry import durable

pytestmark = pytest.mark.django_db


@durable("service.sealed", sealed="service.sealer")
async def sealed(ctx: object) -> None: ...


@durable("service.sealer")
async def sealer(ctx: object) -> None: ...


sent: list[object] = []


@durable("service.watched", sealed="service.sealer", never_started=sent.append)
async def watched(ctx: object) -> None: ...


def run_to(event: FiberEvent, name: str = "service.test") -> Fiber:
    fiber = services.start_fiber(name, {"n": 1})
    claim = leases.claim(fiber.pk, "w1")
    assert claim is not None
    leases.settle(fiber.pk, 1, Settlement(event=event, progress=0, error={"code": "x"}))
    return Fiber.objects.get(pk=fiber.pk)


def test_a_new_fiber_is_pending_with_what_was_given() -> None:
    owner = User.objects.create_user("alice")
    fiber = services.start_fiber("service.test", [1], lane="l", owner_id=owner.pk, max_retries=2, metadata={"m": 1})
    row = selectors.get_fiber(fiber.pk)
    assert (row.status, row.payload, row.metadata, row.owner, row.max_retries) == ("pending", [1], {"m": 1}, owner, 2)
    assert row.id.startswith("fib_")
    assert row.created_at == row.available_at or row.available_at >= row.created_at


def test_a_known_key_returns_the_fiber_that_has_it() -> None:
    first = services.start_fiber("service.test", 1, key="k")
    assert services.start_fiber("service.test", 2, key="k").pk == first.pk
    assert Fiber.objects.get().payload == 1


def test_the_key_of_another_function_is_refused() -> None:
    services.start_fiber("service.test", 1, key="k")
    with pytest.raises(FiberKeyTaken, match="'k'"):
        services.start_fiber("service.other", 1, key="k")


@pytest.mark.parametrize("blank", [{"key": " "}, {"lane": ""}])
def test_blank_ids_are_refused(blank: dict[str, str]) -> None:
    with pytest.raises(FiberError, match="blank"):
        services.start_fiber("service.test", 1, **blank)  # type: ignore[arg-type]  # two keywords that take text


def test_positions_count_up_in_each_lane() -> None:
    for lane in ("a", "a", "b", None, "a"):
        services.start_fiber("service.test", 1, lane=lane)
    positions = Fiber.objects.filter(lane="a").order_by("id").values_list("lane_position", flat=True)
    assert list(positions) == [10, 20, 30]
    assert Fiber.objects.get(lane="b").lane_position == 10


def test_a_delayed_fiber_is_due_later() -> None:
    fiber = services.start_fiber("service.test", 1, delay_seconds=60)
    assert 59.9 < (fiber.available_at - fiber.created_at).total_seconds() < 61
    assert fiber.dispatched_at is None


def test_cancel_of_a_pending_fiber_ends_it_at_once() -> None:
    fiber = services.start_fiber("service.test", 1)
    assert services.cancel_fiber(fiber.pk, reason="user") is True
    row = selectors.get_fiber(fiber.pk)
    assert (row.status, row.reason) == ("cancelled", "user")
    assert row.finished_at is not None
    assert leases.claim(fiber.pk, "w1") is None


def test_cancel_of_a_running_fiber_flags_it_once() -> None:
    fiber = services.start_fiber("service.test", 1)
    leases.claim(fiber.pk, "w1")
    assert services.cancel_fiber(fiber.pk) is True
    flagged = selectors.get_fiber(fiber.pk)
    assert (flagged.status, flagged.cancel_requested_at is None) == ("running", False)
    assert services.cancel_fiber(fiber.pk) is True
    assert selectors.get_fiber(fiber.pk).cancel_requested_at == flagged.cancel_requested_at


def test_cancel_of_a_parked_fiber_ends_it_at_once() -> None:
    fiber = run_to(FiberEvent.PARK)
    assert services.cancel_fiber(fiber.pk) is True
    assert selectors.get_fiber(fiber.pk).status == "cancelled"


@pytest.mark.parametrize("event", [FiberEvent.COMPLETE, FiberEvent.FAIL, FiberEvent.CANCEL])
def test_cancel_of_a_finished_fiber_changes_nothing(event: FiberEvent) -> None:
    fiber = run_to(event)
    assert services.cancel_fiber(fiber.pk) is False
    assert selectors.get_fiber(fiber.pk).status == fiber.status


def test_cancel_of_an_unknown_fiber_is_false() -> None:
    assert services.cancel_fiber("fib_none") is False
    with pytest.raises(FiberNotFound):
        selectors.get_fiber("fib_none")


def test_cancel_of_a_fiber_that_had_started_lets_its_sealer_tidy_up() -> None:
    fresh = services.start_fiber("service.sealed", 1)
    services.cancel_fiber(fresh.pk)
    assert not Fiber.objects.filter(name="service.sealer").exists()  # nothing had happened yet
    fiber = run_to(FiberEvent.HAND_BACK, "service.sealed")
    services.cancel_fiber(fiber.pk, reason="user")
    follow = Fiber.objects.get(name="service.sealer")
    assert follow.payload == {
        "fiber_id": fiber.pk,
        "fence": fiber.fence + 1,
        "name": "service.sealed",
        "payload": {"n": 1},
        "status": "cancelled",
        "reason": "user",
    }
    assert selectors.get_fiber(fiber.pk).fence == fiber.fence + 1  # who held it last is shut out of the log as well


def test_the_end_of_a_fiber_that_never_ran_is_sent_at_once() -> None:
    sent.clear()
    services.cancel_fiber(services.start_fiber("service.watched", {"n": 1}).pk)
    assert sent == [{"n": 1}]
    services.cancel_fiber(run_to(FiberEvent.HAND_BACK, "service.watched").pk)
    assert sent == [{"n": 1}]  # that one had run: its sealer sees to it


def test_what_tidies_up_runs_before_those_that_wait_in_the_lane() -> None:
    first, second = (services.start_fiber("service.sealed", 1, lane="a") for _ in range(2))
    for _ in range(2):
        assert leases.claim(first.pk, "w1") is not None
        fiber = selectors.get_fiber(first.pk)
        leases.settle(first.pk, fiber.fence, Settlement(event=FiberEvent.FAIL, progress=0, ended_itself=False))
        assert leases.claim(second.pk, "w1") is None
        sealer = Fiber.objects.get(name="service.sealer", status="pending")
        assert leases.next_in_lane("a") == sealer.pk
        assert leases.claim(sealer.pk, "w1") is not None
        leases.settle(sealer.pk, 1, Settlement(event=FiberEvent.COMPLETE, progress=0))
        services.requeue_fiber(first.pk)
    services.cancel_fiber(first.pk)
    assert leases.claim(Fiber.objects.get(name="service.sealer", status="pending").pk, "w1") is not None
    positions = Fiber.objects.filter(lane="a").order_by("created_at", "id").values_list("lane_position", flat=True)
    assert list(positions) == [10, 20, 11, 12, 13]


def test_a_lane_with_many_that_tidied_up_goes_on_at_its_end() -> None:
    first = services.start_fiber("service.test", 1, lane="a")
    after = first.lane_position
    made = [insert_fiber(FiberSpec(name="service.test", payload=n, lane="a", behind=after)) for n in range(11)]
    assert [fiber.lane_position for fiber in made] == [*range(11, 20), 20, 30]


def test_a_parked_fiber_resumes() -> None:
    fiber = run_to(FiberEvent.PARK)
    assert services.resume_fiber(fiber.pk) is True
    assert leases.claim(fiber.pk, "w1") is not None


def test_a_resume_that_comes_before_the_park_is_not_lost() -> None:
    fiber = services.start_fiber("service.test", 1)
    leases.claim(fiber.pk, "w1")
    assert services.resume_fiber(fiber.pk) is True
    assert leases.settle(fiber.pk, 1, Settlement(event=FiberEvent.PARK, progress=0)) is FiberStatus.PENDING
    assert leases.claim(fiber.pk, "w1") is not None  # and it does not count for the next park
    assert leases.settle(fiber.pk, 2, Settlement(event=FiberEvent.PARK, progress=0)) is FiberStatus.PARKED


@pytest.mark.parametrize("event", [FiberEvent.COMPLETE, FiberEvent.CANCEL, FiberEvent.HAND_BACK])
def test_only_failed_and_interrupted_fibers_run_again(event: FiberEvent) -> None:
    assert services.requeue_fiber(run_to(event).pk) is False
    assert services.resume_fiber(run_to(event).pk) is False


@pytest.mark.parametrize("event", [FiberEvent.FAIL, FiberEvent.SEAL])
def test_requeue_starts_afresh_over_the_journal(event: FiberEvent) -> None:
    fiber = run_to(event)
    FiberStep.objects.create(fiber_id=fiber.pk, step_key="call", value={"paid": 5}, attempt=1)
    Fiber.objects.filter(pk=fiber.pk).update(retries=3, recoveries=9)
    assert services.requeue_fiber(fiber.pk) is True
    assert list(FiberStep.objects.values_list("step_key", "value", "attempt")) == [("call", {"paid": 5}, 1)]
    row = selectors.get_fiber(fiber.pk)
    assert (row.status, row.error, row.retries, row.recoveries, row.finished_at) == ("pending", None, 0, 0, None)
    assert leases.claim(fiber.pk, "w1") is not None
