"""Sweep once, by hand."""

from django.core.management.base import BaseCommand

from fibers.execution.recovery import sweep


class Command(BaseCommand):
    help = "Recover fibers whose worker was lost, send waiting ones to the workers again, prune old ones."

    def handle(self, *_: object, **__: object) -> None:
        counts = sweep()
        self.stdout.write(
            f"recovered {counts.recovered}, ended {counts.ended}, "
            f"dispatched {counts.dispatched}, pruned {counts.pruned}"
        )
