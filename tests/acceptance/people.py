"""Makes people with a session and a token. Runs within an installation, called by a `Hand`."""

from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore

from chat.access.api_tokens import create_token


def make_person(name: str) -> dict[str, str]:
    """Make a user with a session and a token; returns them."""
    user, _ = User.objects.get_or_create(username=name)
    _, secret = create_token(user, name="acceptance")
    return {"name": name, "session": session_of(user), "token": secret}


def session_of(user: User) -> str:
    """The key of a new session of the user's."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    return str(session.session_key)


def another_session(user_id: int) -> str:
    """The key of a further session of a user's."""
    return session_of(User.objects.get(pk=user_id))


def give_password(user_id: int, password: str) -> str:
    """Give a user a password, which ends the sessions so far; returns the name."""
    user = User.objects.get(pk=user_id)
    user.set_password(password)
    user.save()
    return str(user.username)


def is_there(name: str) -> bool:
    """Whether there is a user of this name."""
    return User.objects.filter(username=name).exists()


def make_many(count: int) -> list[tuple[int, str]]:
    """Make people that only have a session; returns their ids and its keys."""
    known = User.objects.filter(username__startswith="person").count()
    users = [User.objects.create(username=f"person{known + number}") for number in range(count)]
    return [(user.pk, session_of(user)) for user in users]
