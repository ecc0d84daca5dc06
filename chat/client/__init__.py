"""A client of conversations in Python, for tests, scripts and agents that talk to agents: `ChatClient`."""

from chat.client.client import ChatClient
from chat.client.errors import (
    CallFailed,
    ClientClosed,
    ClientError,
    ConnectionFailed,
    Disconnected,
    NoSuchAgent,
    NotSignedIn,
    NotYours,
    Refused,
    RequestRefused,
    TooManyFrames,
    TurnFailed,
)
from chat.client.options import Options
from chat.client.turn import Call, Turn

__all__ = [
    "Call",
    "CallFailed",
    "ChatClient",
    "ClientClosed",
    "ClientError",
    "ConnectionFailed",
    "Disconnected",
    "NoSuchAgent",
    "NotSignedIn",
    "NotYours",
    "Options",
    "Refused",
    "RequestRefused",
    "TooManyFrames",
    "Turn",
    "TurnFailed",
]
