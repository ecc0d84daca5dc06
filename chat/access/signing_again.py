"""A second look at who sits there, before something that cannot be undone."""

from django.contrib.auth import authenticate, get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest

from chat.access.browsers import is_fresh
from chat.account_errors import SignInNeeded


def has_password(user: AbstractBaseUser) -> bool:
    """Whether the account has a password that a person could give."""
    return bool(user.password) and user.has_usable_password()


def require_again(request: HttpRequest, user: AbstractBaseUser, password: str) -> None:
    """Ask for the password; where an account has none, for a sign-in of a moment ago. Errors: `SignInNeeded`.

    A wrong password counts as a failed attempt to sign in, with the same limits.
    """
    if not has_password(user):
        if not is_fresh(request.session):
            raise SignInNeeded
        return
    credentials = {get_user_model().USERNAME_FIELD: user.get_username(), "password": password}
    found = authenticate(request, **credentials)
    if found is None or found.pk != user.pk:
        raise SignInNeeded
