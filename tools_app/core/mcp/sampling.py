"""Questions of servers to the agent's own model (sampling), and the function that asks it. Pure."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """A model's answer."""

    text: str
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingRequest:
    """A server's question to a model: texts by role, oldest first."""

    system: str
    messages: tuple[tuple[str, str], ...]
    max_tokens: int


Sampler: TypeAlias = Callable[[SamplingRequest], Awaitable[Sampled]]
"""Asks the agent's own model, and counts what it costs. Errors: `ThinkError`."""
