"""The project's API: composition only."""

from chat.http.api.router import build_api

api = build_api()
