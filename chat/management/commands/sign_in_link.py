"""`sign_in_link [USER]`: print a one-time link that signs in on this machine."""

import os
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse

from chat.access.sign_in import create_link
from chat.errors import SignInDenied
from chat.management.users import find_user


class Command(BaseCommand):
    help = "Print a one-time sign-in link for this machine. Not on a production server."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", nargs="?", default="", help="Name of the user; without: the only one.")
        parser.add_argument(
            "--port", type=int, default=0, help="Port of the web server; without: that of the settings."
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        user = find_user(options["user"])
        try:
            secret = create_link(user)
        except SignInDenied as error:
            raise CommandError(error.message) from error
        port = options["port"] or getattr(settings, "PORT", 0) or os.environ.get("PORT", "8000")
        self.stdout.write(f"http://127.0.0.1:{port}{reverse('sign-in-link', args=[secret])}")
