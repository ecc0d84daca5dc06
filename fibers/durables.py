"""The durable functions of this app. Found by `fibers.apps`, as those of every app."""

from fibers.effects.registered import FAMILY, effect_names
from fibers.effects.running import run_events
from fibers.registry import durable

durable(FAMILY, members=effect_names)(run_events)
