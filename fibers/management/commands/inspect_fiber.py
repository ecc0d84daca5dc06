"""Print a fiber with its journal."""

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from fibers.errors import FiberNotFound
from fibers.models import Fiber
from fibers.selectors import get_fiber, history
from thinkproject.kernel.jsonvalue import dump

VALUES = ("payload", "metadata", "stash", "result", "error")
FIELDS = [field.attname for field in Fiber._meta.concrete_fields if field.name not in VALUES]
WIDTH = 2000


class Command(BaseCommand):
    help = "Print a fiber: where it stands, who holds it, which steps are settled."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("fiber_id")
        parser.add_argument("--full", action="store_true", help="do not shorten long values")

    def handle(self, *_: object, **options: object) -> None:
        fiber_id = str(options["fiber_id"])
        try:
            fiber = get_fiber(fiber_id)
        except FiberNotFound as error:
            raise CommandError(error.message) from error
        width = None if options["full"] else WIDTH
        for name in FIELDS:
            value = getattr(fiber, name)
            if value not in (None, ""):
                self.stdout.write(f"{name:20} {value}")
        for name in VALUES:
            if getattr(fiber, name) is not None:
                self.stdout.write(f"{name:20} {dump(getattr(fiber, name))[:width]}")
        for step in history(fiber_id):
            self.stdout.write(f"step {step.step_key} (attempt {step.attempt}, {step.created_at}): ", ending="")
            self.stdout.write(dump(step.value)[:width])
