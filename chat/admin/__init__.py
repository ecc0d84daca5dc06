"""The chat's models in Django's admin, which finds what this package registers."""

from chat.admin import conversations, instances, tool_calls

__all__ = ["conversations", "instances", "tool_calls"]
