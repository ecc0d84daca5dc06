"""The effect of the chaos run: each row that the clerk adds is a line in the ledger."""

from django.contrib.auth.models import Group

from chat.effects import EffectEvent, create_effect
from tests.chaos.durable.agents import write


def note(event: EffectEvent) -> None:
    """Write down that a row entered, under the event's key."""
    if event.row is not None:
        write(event.row.name, event.key)


create_effect("chaos.enlisted", lambda: Group.objects.filter(name__startswith="e"), on_enter=note)
