"""Effects of querysets: code that runs when a row enters, changes in or leaves a queryset.

    async def greet(event):
        await mail(event.row.address, key=event.key)

    create_effect("shop.greet", lambda: Customer.objects.filter(greeted=False), on_enter=greet)

In the module `durables.py` of an app, which every process loads. Each event is the work of a fiber: it survives
crashes, is tried again, and runs where workers are.
"""

from collections.abc import Callable
from typing import Any, Final

from django.apps import apps
from django.db.models import QuerySet

from fibers.core.effects import EffectKind
from fibers.effects import looking, registered
from fibers.effects.registered import EffectEvent, Handler, RowEffect
from fibers.errors import EffectInvalid
from thinkproject.kernel.jsonvalue import JSONValue

__all__ = ["EffectEvent", "RowEffect", "create_effect"]

NAME_CHARACTERS: Final = 100


def create_effect(  # noqa: PLR0913 - one keyword for each thing an effect may declare
    name: str,
    queryset: Callable[[], QuerySet[Any]],
    *,
    on_enter: Handler | None = None,
    on_update: Handler | None = None,
    on_exit: Handler | None = None,
    batch: int = 0,
    skip_initial: bool = False,
    fingerprint: Callable[[Any], JSONValue] | None = None,
    max_retries: int = 3,
) -> RowEffect:
    """Run code when rows enter, change in or leave what `queryset` gives.

    **Shape:** `name` is a contract: stored rows carry it. `queryset` is called at each look; it may be of another
    database. `fingerprint` gets a row and returns the JSON that tells whether it has changed; that is the `previous`
    of the next event. Without it a change of any column counts, and `previous` is a hash. `skip_initial`: rows that
    were there at the first look of all fire nothing. **Units:** up to `batch` events of a kind are handed over
    together, as a list; 0: each alone. `max_retries` are those of a handler that raises.
    **Durability:** a row fires once for each time that it enters, however often and by whatever it is found. What
    happens to it several times between two looks counts once. An event is run at least once, and again after a crash;
    a row that has left before its entry or change is run for the first time is passed over.
    **Errors:** `EffectInvalid` for a name that is taken or unfit, for no handler, and before models are loaded.
    """
    given = {EffectKind.ENTER: on_enter, EffectKind.UPDATE: on_update, EffectKind.EXIT: on_exit}
    handlers = {kind: handler for kind, handler in given.items() if handler is not None}
    if not name.strip() or len(name) > NAME_CHARACTERS or ":" in name:
        raise EffectInvalid(f"{name!r} is no name of an effect: up to {NAME_CHARACTERS} characters without a colon")
    if not handlers or not all(map(callable, handlers.values())):
        raise EffectInvalid(f"the effect {name!r} does nothing: on_enter, on_update or on_exit must be a function")
    if not apps.models_ready:
        raise EffectInvalid(f"the effect {name!r} is declared before models are loaded: move it into durables.py")
    effect = RowEffect(
        name=name,
        queryset=queryset,
        model=queryset().model,
        handlers=handlers,
        batch=batch,
        skip_initial=skip_initial,
        fingerprint=fingerprint,
        max_retries=max_retries,
        unwatch=looking.unwatch,
    )
    if not registered.add(effect):
        raise EffectInvalid(f"there is an effect {name!r} already: dispose of it first, or take another name")
    looking.watch(effect)
    return effect
