"""Django admin of the chat; importing this package registers its models."""

from chat.admin import access, files, instances, lower_apps, streams, turns

__all__ = ["access", "files", "instances", "lower_apps", "streams", "turns"]
