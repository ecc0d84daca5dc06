"""Preparation before the servers start: migrations, the first user, and a sign-in link.

`make run` prepares within its first web process, before that one serves (`server.py --prepare`): Django is loaded once.
`python -m thinkproject.run.prepare` does the same in a process of its own. It prints one JSON object as its last line;
what goes wrong is one line on standard error and exit code 3.
"""

import json
import os
import sys
from io import StringIO
from typing import Any

import django
from django.core.exceptions import ImproperlyConfigured

EXIT_REFUSED = 3
FIRST_USER = "me"
WALLS_SECONDS = 5.0
"""A machine on which this takes longer hears of it from `think_doctor`."""


class Refused(Exception):
    """The database cannot be used; the message is one line."""


def main() -> int:
    """Prepare the database and the first user; print the outcome."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings")
    try:
        django.setup()
        outcome = prepare()
    except ImproperlyConfigured as error:
        return _refuse(" ".join(str(error).split()))
    except Refused as error:
        return _refuse(str(error))
    sys.stdout.write("\n" + json.dumps(outcome) + "\n")
    return 0


def prepare() -> dict[str, Any]:
    """Bring the database in step. Django is set up. Errors: `Refused`.

    Shape: `migrations` is how many were applied; `username` and a fresh sign-in `link` are empty in production; `walls`
    is a sentence about walls around code of models that are missing here.
    """
    from django.conf import settings  # noqa: PLC0415 - after setup
    from django.db import DatabaseError, connection  # noqa: PLC0415 - after setup

    from tools_app.sandbox.starting import found_walls, look_soon  # noqa: PLC0415 - after setup

    looking = look_soon()  # while the database is prepared

    pool = connection.settings_dict["OPTIONS"].pop("pool", None)  # it would only say that it got no connection in time
    try:
        connection.ensure_connection()
        outcome: dict[str, Any] = {"migrations": migrate(), "link": "", "username": ""}
        if not settings.IS_PRODUCTION:
            outcome["username"] = first_user()
            outcome["link"] = sign_in_link(outcome["username"])
    except (DatabaseError, OSError) as error:
        raise Refused(f"the database cannot be used: {_one_line(error)} Check DATABASE_URL.") from error
    finally:
        connection.close()
        if pool is not None:
            connection.settings_dict["OPTIONS"]["pool"] = pool
    looking.join(WALLS_SECONDS)
    found = found_walls()
    return {**outcome, "walls": found.caution if found else ""}


def migrate() -> int:
    """Bring the database in step; return how many migrations were applied."""
    from django.core.management import call_command  # noqa: PLC0415 - after setup
    from django.db import connection  # noqa: PLC0415 - after setup
    from django.db.migrations.executor import MigrationExecutor  # noqa: PLC0415 - after setup

    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        call_command("migrate", interactive=False, verbosity=0)
    return len(plan)


def first_user() -> str:
    """Make the user of this machine once: staff, superuser, no password (the sign-in link is the way in)."""
    from django.contrib.auth import get_user_model  # noqa: PLC0415 - after setup

    users = get_user_model()
    found = users.objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if found is None:
        found = users(**{users.USERNAME_FIELD: FIRST_USER, "is_staff": True, "is_superuser": True})
        found.set_unusable_password()
        found.save()
    return str(found.get_username())


def sign_in_link(username: str) -> str:
    """Return a fresh one-time link of the user's."""
    from django.core.management import call_command, get_commands  # noqa: PLC0415 - after setup

    if "sign_in_link" not in get_commands():
        return ""
    output = StringIO()
    call_command("sign_in_link", username, stdout=output)
    words = output.getvalue().split()
    return next((word for word in words if word.startswith("http://")), "")


def _refuse(line: str) -> int:
    sys.stderr.write(line + "\n")
    return EXIT_REFUSED


def _one_line(error: Exception) -> str:
    from thinkproject.logs import redact  # noqa: PLC0415 - beside the other late imports

    text = " ".join(redact(str(error)).split())
    return text if text.endswith(".") else text + "."


if __name__ == "__main__":
    sys.exit(main())
