"""The chat's models in Django's admin, which finds what this package registers."""

from chat.admin import calls, conversations, instances

__all__ = ["calls", "conversations", "instances"]
