"""Functions whose effects are rows that can be counted, and that stop wherever a test wants to kill them."""

import asyncio
import time
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group, User

from fibers.context import FiberContext
from fibers.core.states import WORKER_LOST
from fibers.effects.declaring import EffectEvent, create_effect
from fibers.registry import durable
from fibers.services import restart_lost_fiber
from thinkproject.kernel.aio import db


def effect(ctx: FiberContext, number: int) -> int:
    """Append a row to the effects and settle the step, in one transaction."""
    key = f"s:{number}"
    with ctx.fenced():
        Group.objects.create(name=f"effect {ctx.fiber_id} {key} by {ctx.attempt}")
        ctx.record_in(key, number * 10)
        if stops(ctx, number, "inside"):
            time.sleep(60)  # until it is killed
    return number * 10


def stops(ctx: FiberContext, number: int, point: str) -> bool:
    """Whether the first attempt waits here to be killed."""
    return ctx.attempt == 1 and ctx.payload.get("stop") == [number, point]


async def reach(ctx: FiberContext, number: int, point: str) -> None:
    """Say that this point is reached, and wait there if it is the one."""
    if stops(ctx, number, point):
        await db(Group.objects.create, name=f"reached {ctx.fiber_id}")
        await asyncio.sleep(60)  # until it is killed


@durable("site.work")
async def work(ctx: FiberContext) -> Any:
    """Several steps, each with an effect."""
    values = []
    for number in range(ctx.payload["steps"]):
        known = await ctx.recorded(f"s:{number}")
        if known is None:
            await reach(ctx, number, "before")
            if stops(ctx, number, "inside"):
                await db(Group.objects.create, name=f"reached {ctx.fiber_id}")
            values.append(await db(effect, ctx, number))
            await reach(ctx, number, "after")
        else:
            values.append(known.value)
    await reach(ctx, ctx.payload["steps"], "end")
    return values


@durable("site.wait")
async def wait(ctx: FiberContext) -> Any:
    """Run until interrupted the first time; put something in order when that happens; end at once the second time."""
    if ctx.attempt > 1:
        return "resumed"
    await db(Group.objects.create, name=f"reached {ctx.fiber_id}")
    try:
        await asyncio.sleep(60)  # until it is interrupted
    except asyncio.CancelledError:
        await ctx.record("flushed", str(ctx.interrupt))
        raise


@durable("site.lost", sealed="site.lost_sealed", interrupts_when_lost=True)
async def lost(ctx: FiberContext) -> Any:
    """Note where it is, and be killed; what follows is decided by the function below."""
    if ctx.attempt == 1:
        await ctx.stash({"page": 7})
        await db(Group.objects.create, name=f"reached {ctx.fiber_id}")
        await asyncio.sleep(60)  # until it is killed
    return {"snapshot": ctx.stashed, "retries": ctx.retries}


@durable("site.lost_sealed")
async def decide(ctx: FiberContext) -> None:
    """Have it run again, as a retry."""
    if ctx.payload["reason"] == WORKER_LOST:
        await db(restart_lost_fiber, ctx.payload["fiber_id"], is_retry=True)


async def greet(event: EffectEvent) -> None:
    """Greet a user once; at the slow one, be killed the first time."""
    if event.row.username == "slow" and event.fiber.attempt == 1:
        await db(Group.objects.create, name=f"reached {event.fiber.fiber_id}")
        await asyncio.sleep(60)  # until it is killed
    if await event.fiber.recorded("greeted") is None:
        await db(note_greeting, event)


def note_greeting(event: EffectEvent) -> None:
    """Greet, and settle the step, in one transaction."""
    with event.fiber.fenced():
        Group.objects.create(name=f"greeted {event.row.username} {event.key}")
        event.fiber.record_in("greeted", None)


create_effect("site.greet", lambda: User.objects.filter(first_name="waiting"), on_enter=greet)


if getattr(settings, "FIBER_SITE_IS_NEW", 0):

    @durable("site.new")
    async def new(ctx: FiberContext) -> Any:
        """What the deploy before did not have."""
        return {"attempt": ctx.attempt, "retries": ctx.retries}


def site_members() -> list[str]:
    """The members of families that this process has."""
    return list(getattr(settings, "FIBER_SITE_MEMBERS", ()))


@durable("site.shared", members=site_members)
async def shared(ctx: FiberContext) -> Any:
    """Run where it is; its messages go to all workers."""
    return ctx.worker


@durable("site.lab", members=site_members, queue=lambda _name: "lab")
async def lab(ctx: FiberContext) -> Any:
    """Run where it is; its messages go to a queue of their own."""
    return ctx.worker
