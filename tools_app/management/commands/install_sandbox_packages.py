"""Fetch the packages that code of models may load."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from tools_app.errors import CodeInvalid, SandboxUnavailable
from tools_app.sandbox.conf import sandbox_settings
from tools_app.sandbox.packages import allowed, bundled


class Command(BaseCommand):
    help = "Fetch and bundle the packages of THINK_SANDBOX_PACKAGES, once; afterwards code loads them without network."

    def handle(self, *_args: Any, **_options: Any) -> None:
        folder = sandbox_settings.packages_folder
        try:
            sources = bundled(folder, allowed(sandbox_settings.packages))
        except (CodeInvalid, SandboxUnavailable) as error:
            raise CommandError(error.message) from error
        for name, source in sources.items():
            self.stdout.write(f"{name}: {len(source.encode()):,} bytes")
        self.stdout.write(f"{len(sources)} packages for code are in {folder}.")
