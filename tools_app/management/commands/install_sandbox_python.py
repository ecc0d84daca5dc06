"""Fetch what Python code of models runs in."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from tools_app.errors import SandboxUnavailable
from tools_app.sandbox.conf import sandbox_settings
from tools_app.sandbox.packages import install_python


class Command(BaseCommand):
    help = "Fetch Pyodide from the npm registry, once; afterwards Python code of models runs without network."

    def handle(self, *_args: Any, **_options: Any) -> None:
        try:
            folder = install_python(sandbox_settings.packages_folder)
        except SandboxUnavailable as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"Python for code is in {folder}.")
