"""`create_user NAME`: make an ordinary user, with a password or with a sign-in link."""

import getpass
import sys
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import IntegrityError, transaction

from chat.access.sign_in import refuse_in_production
from chat.errors import SignInDenied

FILLED_HERE = ("password", "last_login", "date_joined")


class Command(BaseCommand):
    help = "Make an ordinary user. The password is asked for; in a pipe it is the first line."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="What the user signs in with.")
        parser.add_argument("--email", default="", help="The address of the user.")
        parser.add_argument("--staff", action="store_true", help="Let the user into the admin; rights are given there.")
        parser.add_argument(
            "--link", action="store_true", help="No password: print a sign-in link. Not on a production server."
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        user = _new_user(options["name"], email=options["email"], is_staff=options["staff"])
        if options["link"]:
            _refuse_link()
            user.set_unusable_password()
        else:
            user.set_password(_checked_password(user))
        try:
            with transaction.atomic():
                user.save()
        except IntegrityError as error:
            raise CommandError(f"There is a user {options['name']!r} already.") from error
        self.stderr.write(f"Made the user {user.get_username()!r}.")
        if options["link"]:
            call_command("sign_in_link", user.get_username(), stdout=self.stdout)


def _new_user(name: str, *, email: str, is_staff: bool) -> AbstractBaseUser:
    """A row of whatever user model the project has, checked and not stored. Errors: `CommandError`."""
    model = get_user_model()
    fields: dict[str, Any] = {model.USERNAME_FIELD: model.normalize_username(name)}
    known = {field.name for field in model._meta.get_fields()}
    if is_staff:
        if "is_staff" not in known:
            raise CommandError("The users of this project have no staff.")
        fields["is_staff"] = True
    if email:
        fields[model.get_email_field_name()] = email
    user = model(**fields)
    try:
        user.clean_fields(exclude=FILLED_HERE)
        user.validate_unique()
    except ValidationError as error:
        raise CommandError(
            " ".join(f"{key}: {' '.join(problems)}" for key, problems in error.message_dict.items())
        ) from error
    return user


def _checked_password(user: AbstractBaseUser) -> str:
    password = _read_password()
    try:
        validate_password(password, user)  # type: ignore[arg-type]  # any user model
    except ValidationError as error:
        raise CommandError(" ".join(error.messages)) from error
    return password


def _read_password() -> str:
    if not sys.stdin.isatty():
        password = sys.stdin.readline().rstrip("\r\n")
        if not password:
            raise CommandError("There is no password on standard input.")
        return password
    password = getpass.getpass("Password: ")
    if password != getpass.getpass("Password (again): "):
        raise CommandError("The passwords are not the same.")
    return password


def _refuse_link() -> None:
    try:
        refuse_in_production()
    except SignInDenied as error:
        raise CommandError(error.message) from error
