"""Django admin of the chat; importing this package registers its models."""

from chat.admin import conversations, instances, tool_calls

__all__ = ["conversations", "instances", "tool_calls"]
