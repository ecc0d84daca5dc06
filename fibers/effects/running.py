"""Runs the handlers of effects, in fibers of the family `effect`."""

from typing import Any

from fibers.context import FiberContext
from fibers.core.effects import EffectKind
from fibers.effects.looking import event_key, present
from fibers.effects.registered import EffectEvent, RowEffect, begin_run, end_run
from fibers.errors import Failed
from thinkproject.kernel.aio import call_user_code, db
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue


async def run_events(ctx: FiberContext) -> JSONValue:
    """Hand the events of a fiber to their handler. Shape: `{"events": how many there were}`.

    Which rows were still there is settled in the journal before the handler runs for the first time: it may take its
    row out of the queryset itself, and must find it after a crash all the same.
    """
    name = ctx.name.partition(":")[2]
    effect = begin_run(name)
    if effect is None:
        raise Failed("effect_disposed", f"this process has no effect {name!r} any more")
    try:
        return await _run(ctx, effect, ctx.payload)
    finally:
        end_run(effect)


async def _run(ctx: FiberContext, effect: RowEffect, payload: JSONObject) -> JSONValue:
    kind = EffectKind(payload["kind"])
    handler = effect.handlers.get(kind)  # a deploy may have taken it away
    entries: list[JSONObject] = payload["events"]
    keys = [entry["pk"] for entry in entries]
    if kind is not EffectKind.EXIT:
        keys = await ctx.step("present", lambda: db(_still_present, effect, keys))
    rows = await db(_rows, effect, keys)
    events = [
        EffectEvent(
            effect=effect.name,
            kind=kind,
            object_pk=entry["pk"],
            row=rows.get(entry["pk"]),
            previous=entry["previous"],
            key=event_key(effect.name, entry["entry"], kind, entry["revision"]),
            fiber=ctx,
        )
        for entry in entries
        if kind is EffectKind.EXIT or entry["pk"] in rows
    ]
    if handler is None or not events:
        return {"events": 0}
    await call_user_code(handler, events if effect.batch else events[0])
    return {"events": len(events)}


def _still_present(effect: RowEffect, keys: list[str]) -> JSONValue:
    return [str(pk) for pk in present(effect, keys).values_list("pk", flat=True)]


def _rows(effect: RowEffect, keys: list[str]) -> dict[str, Any]:
    """The rows as they are, in the queryset or not."""
    found = effect.model._base_manager.using(effect.queryset().db).filter(pk__in=keys)
    return {str(row.pk): row for row in found}
