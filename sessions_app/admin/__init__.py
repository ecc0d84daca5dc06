"""Sessions in Django's admin, which finds what this package registers."""

from sessions_app.admin import context, sessions

__all__ = ["context", "sessions"]
