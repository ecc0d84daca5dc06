"""`create_api_token USER --name N`: make a bearer token and print it, once."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from chat.access.api_tokens import SCOPES, create_token
from chat.errors import InputInvalid


class Command(BaseCommand):
    help = "Make an API token of a user's and print it. It cannot be shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="Name of the user.")
        parser.add_argument("--name", required=True, help="What the token is for; shown in lists.")
        parser.add_argument("--days", type=int, default=None, help="Days until it expires; without: never.")

        parser.add_argument(
            "--scope",
            action="append",
            metavar="SCOPE",
            default=[],
            help=f"Limit it to this door ({', '.join(SCOPES)}); may be given several times. Without: it opens all.",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        model = get_user_model()
        user = model.objects.filter(**{model.USERNAME_FIELD: options["user"]}, is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active user {options['user']!r}.")
        try:
            _token, secret = create_token(user, name=options["name"], days=options["days"], scopes=options["scope"])
        except InputInvalid as error:
            raise CommandError(error.message) from error
        self.stderr.write("Keep this token; it is not shown again.")
        self.stdout.write(secret)
