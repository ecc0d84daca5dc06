"""Django admin of the sessions; importing this package registers its models."""

from sessions_app.admin import context, sessions

__all__ = ["context", "sessions"]
