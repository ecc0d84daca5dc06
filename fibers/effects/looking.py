"""Finds what entered, changed and left: compares an effect's queryset with its entries, and starts the fibers.

Two things lead here: signals of the model, after the commit, as a hint that costs a few queries for all rows of a
transaction; and the sweep of the workers, which also finds `.update()`, SQL by hand, and what a lost hint left. Both
compare without a lock first. Where something differs they take the lock of the effect's row and compare again: what
is found under it is new for all processes, and the entries and the fibers are written in that one transaction. So a
crash leaves both or neither.

A look costs two queries and reads the keys of all rows that are present.
"""

import hashlib
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import F, Model, QuerySet
from django.db.models.functions import Now
from django.db.models.signals import post_delete, post_save

from fibers.core.effects import EffectKind, EntryDiff, batches, compare
from fibers.core.journal import normalised
from fibers.effects.registered import FAMILY, RowEffect, effects
from fibers.models import EffectEntry, EffectState
from fibers.queue.enqueue import FiberSpec, insert_fibers
from thinkproject.kernel.jsonvalue import JSONValue

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 15.0
"""How often the sweep looks at each effect, whatever hints say."""
SWEEP_SECONDS: Final = 0.5
"""Looks of one sweep take no longer, so that a lost worker is found in time; the others follow with the next sweep."""
TAKEN: Final = 20
"""Effects whose turn a sweep takes with one statement."""
ROUND: Final = 500
"""Rows whose changes are written in one transaction."""
HINTED: Final = 1000
"""So many rows of one commit are looked at by their keys; more of them are a look at everything."""

LOOKING: Final = 20
"""Effects of one model that look as soon as a row was saved, in the process that saved it."""

Fingerprints = dict[str, JSONValue]
"""Key to fingerprint."""


def look(
    effect: RowEffect,
    keys: Collection[str] | None = None,
    *,
    created: Collection[str] = (),
    is_primed: bool | None = None,
) -> int:
    """Start what these rows, or all, give cause to; return how many events there were.

    `created`: rows that are known to be newer than the declaration: they fire in a first look that skips, too.
    `is_primed`: what the effect's row says, where it was read already.
    **Concurrency:** any number at once, outside a transaction. **Errors:** those of the effect's queryset.
    """
    if is_primed is None:
        is_primed = EffectState.objects.get_or_create(name=effect.name)[0].is_primed
    if not is_primed or effect.queryset().query.is_sliced:  # of a window, one row may push out another
        keys = None
    if not is_primed and effect.skip_initial:
        return _look_locked(effect, None, created=created)
    differing = _differences(effect, keys)[0].keys
    if not differing and not is_primed:
        return _look_locked(effect, [])
    return sum(_look_locked(effect, differing[at : at + ROUND]) for at in range(0, len(differing), ROUND))


@transaction.atomic
def _look_locked(effect: RowEffect, keys: Collection[str] | None, *, created: Collection[str] = ()) -> int:
    """Compare again under the lock that everyone takes who fires this effect, and write what differs."""
    mine = EffectState.objects.filter(pk=effect.name)
    mine.update(looks=F("looks") + 1, looked_at=Now())
    was_primed = mine.values_list("is_primed", flat=True).get()
    if not was_primed:
        mine.update(is_primed=True)
    diff, values = _differences(effect, keys)
    skips = effect.skip_initial and not was_primed
    return _write(effect, diff, values, skipped=set(diff.entered) - set(created) if skips else set())


def present(effect: RowEffect, keys: Collection[str] | None) -> QuerySet[Any]:
    """The effect's rows now, all of them or those of these keys."""
    rows = effect.queryset()
    if keys is None:
        return rows
    if rows.query.is_sliced:
        return effect.model._base_manager.using(rows.db).filter(pk__in=rows.values("pk")).filter(pk__in=keys)
    return rows.filter(pk__in=keys)


def _differences(effect: RowEffect, keys: Collection[str] | None) -> tuple[EntryDiff, Fingerprints]:
    """Two queries, however many rows there are."""
    if keys is not None and not keys:
        return EntryDiff(), {}
    known = EffectEntry.objects.filter(effect_id=effect.name).order_by("pk")
    if keys is not None:
        known = known.filter(object_pk__in=keys)
    values = _fingerprints(effect, keys)
    return compare(values, dict(known.values_list("object_pk", "fingerprint"))), values


def _fingerprints(effect: RowEffect, keys: Collection[str] | None) -> Fingerprints:
    rows = present(effect, keys)
    if effect.fingerprint is not None:
        return {str(row.pk): normalised(effect.fingerprint(row)) for row in rows}
    if EffectKind.UPDATE not in effect.handlers:
        return dict.fromkeys(map(str, rows.values_list("pk", flat=True)))
    names = [each.attname for each in effect.model._meta.concrete_fields]
    return {str(pk): _hash(values) for pk, *values in rows.values_list("pk", *names)}


def _hash(values: list[Any]) -> str:
    return hashlib.sha256(repr(values).encode()).hexdigest()[:32]


def _write(effect: RowEffect, diff: EntryDiff, values: Fingerprints, *, skipped: Collection[str]) -> int:
    """Change the entries and insert the fibers: a few statements for any number of rows."""
    known = EffectEntry.objects.filter(effect_id=effect.name)
    entered = [EffectEntry(effect_id=effect.name, object_pk=key, fingerprint=values[key]) for key in diff.entered]
    EffectEntry.objects.bulk_create(entered)
    events = {EffectKind.ENTER: [_event(entry) for entry in entered if entry.object_pk not in skipped]}
    if diff.updated:
        changed = list(known.filter(object_pk__in=diff.updated).order_by("pk"))
        before = [entry.fingerprint for entry in changed]
        for entry in changed:
            entry.fingerprint, entry.revision = values[entry.object_pk], entry.revision + 1
        EffectEntry.objects.bulk_update(changed, ["fingerprint", "revision"])
        events[EffectKind.UPDATE] = list(map(_event, changed, before))
    if diff.left:
        left = list(known.filter(object_pk__in=diff.left).order_by("pk"))
        known.filter(pk__in=[entry.pk for entry in left]).delete()
        events[EffectKind.EXIT] = [_event(entry, entry.fingerprint) for entry in left]
    wanted = {kind: listed for kind, listed in events.items() if kind in effect.handlers}
    insert_fibers(_specs(effect, wanted))
    return sum(map(len, wanted.values()))


def _event(entry: EffectEntry, previous: JSONValue = None) -> dict[str, JSONValue]:
    return {"pk": entry.object_pk, "entry": entry.pk, "revision": entry.revision, "previous": previous}


def _specs(effect: RowEffect, events: Mapping[EffectKind, list[dict[str, JSONValue]]]) -> list[FiberSpec]:
    return [
        FiberSpec(
            name=f"{FAMILY}:{effect.name}",
            payload={"kind": kind.value, "events": batch},
            key=event_key(effect.name, batch[0]["entry"], kind, batch[0]["revision"]),
            scope=f"{FAMILY}:{effect.name}",
            max_retries=effect.max_retries,
        )
        for kind, listed in events.items()
        for batch in batches(listed, effect.batch)
    ]


def event_key(name: str, entry: int, kind: EffectKind, revision: int) -> str:
    """The key of an event: no other event of any effect has it."""
    return f"{FAMILY}:{name}:{entry}:{kind.value}:{revision}"


# The sweep


def look_due() -> int:
    """Look at the effects of this process whose turn it is, within half a second; return how many events there were.

    One query where none is due. A queryset that fails is noted with its error; the others go on.
    """
    here = {effect.name: effect for effect in effects()}
    if not here:
        return 0
    new = [effect for effect in here.values() if not effect.is_stored]
    if new:
        EffectState.objects.bulk_create([EffectState(name=effect.name) for effect in new], ignore_conflicts=True)
        for effect in new:
            effect.is_stored = True
    rows = EffectState.objects.filter(due_at__lte=Now()).order_by("due_at", "pk").values_list("name", "is_primed")
    due = [(name, is_primed) for name, is_primed in rows if name in here]
    found, started = 0, time.monotonic()
    for at in range(0, len(due), TAKEN):
        if time.monotonic() - started > SWEEP_SECONDS:
            break
        taken = due[at : at + TAKEN]
        turn = EffectState.objects.filter(name__in=[name for name, _ in taken], due_at__lte=Now())
        # Another sweeper may have taken some of them: two looks are as right as one.
        if turn.update(due_at=Now() + timedelta(seconds=LOOK_SECONDS), looked_at=Now(), error=""):
            found += sum(_look_safely(here[name], is_primed=is_primed) for name, is_primed in taken)
    return found


def _look_safely(
    effect: RowEffect,
    keys: Collection[str] | None = None,
    *,
    created: Collection[str] = (),
    is_primed: bool | None = None,
) -> int:
    try:
        return look(effect, keys, created=created, is_primed=is_primed)
    except Exception as error:
        logger.error("look of an effect failed", exc_info=error, extra={"action": "effect_look", "effect": effect.name})
        EffectState.objects.filter(pk=effect.name).update(error=f"{type(error).__name__}: {error}")
        return 0


# Hints


class _Hints(threading.local):
    """Rows that this thread's transactions have saved or deleted, for one look at all of them."""

    def __init__(self) -> None:
        self.keys: defaultdict[type[Model], dict[str, bool]] = defaultdict(dict)  # key to whether it was created


_hints = _Hints()
_watched: defaultdict[type[Model], list[RowEffect]] = defaultdict(list)


def watch(effect: RowEffect) -> None:
    """Have the signals of the effect's model lead to a look."""
    if not _watched[effect.model]:
        for signal in (post_save, post_delete):
            signal.connect(_changed, sender=effect.model)
    _watched[effect.model].append(effect)


def unwatch(effect: RowEffect) -> None:
    """Have them lead to it no more."""
    _watched[effect.model].remove(effect)
    if not _watched[effect.model]:
        for signal in (post_save, post_delete):
            signal.disconnect(_changed, sender=effect.model)


def _changed(sender: Any, instance: Any, created: bool = False, using: str | None = None, **_: Any) -> None:
    keys = _hints.keys[sender]
    keys[str(instance.pk)] = created or keys.get(str(instance.pk), False)
    transaction.on_commit(lambda: _look_at_hints(sender), using=using, robust=True)


def _look_at_hints(model: type[Model]) -> None:
    """Look at all that the commit brought: the first callback finds everything, those that follow find nothing.

    What was rolled back is looked at with the next commit, and is not there. Who saves a row does not wait for many
    effects: the next sweep of a worker looks then.
    """
    keys = _hints.keys.pop(model, {})
    if not keys:
        return
    effects_here = list(_watched[model])
    if len(effects_here) > LOOKING:
        names = [effect.name for effect in effects_here]
        EffectState.objects.filter(name__in=names).update(due_at=Now())
        return
    created = [key for key, is_created in keys.items() if is_created]
    for effect in effects_here:
        _look_safely(effect, list(keys) if len(keys) <= HINTED else None, created=created)
