"""The project's API: composition only."""

from chat.api import build_api

api = build_api()
