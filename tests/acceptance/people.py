"""`python -m tests.acceptance.people NAME`: make a user with a session and a token; print them as JSON."""

import json
import os
import sys

import django


def main(name: str) -> None:
    """Write to the database of the installation that the environment names."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings")
    django.setup()
    from django.conf import settings
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.auth.models import User
    from django.contrib.sessions.backends.db import SessionStore

    from chat.tokens import create_token

    user, _ = User.objects.get_or_create(username=name)
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    _, secret = create_token(user, name="acceptance")
    cookie = f"{settings.SESSION_COOKIE_NAME}={session.session_key}"
    sys.stdout.write(json.dumps({"name": name, "cookie": cookie, "token": secret}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
