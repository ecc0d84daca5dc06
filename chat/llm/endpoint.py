"""A provider's endpoint. Pure, and separate from `transport`, since importing `openai` is slow."""

import ipaddress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

OPENAI_BASE_URL: Final = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A provider's address and its models' limits.

    `max_tokens_field` differs between vendors. `can_call_tools` false means that tools are never sent. `None` is not
    declared: `chat.llm.abilities` decides then. `listed_inputs`: the media that the product's list names for the model.
    `calls_in_text` false: calls that a model writes into its text stay text.
    """

    provider: str
    base_url: str = OPENAI_BASE_URL
    api_key: str = field(default="", repr=False)
    can_call_tools: bool | None = None
    calls_in_text: bool = True
    accepts_images: bool | None = None
    accepts_documents: bool | None = None
    listed_inputs: tuple[str, ...] | None = None
    max_tokens_field: str = "max_tokens"
    headers: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Secrets that must not appear in logs."""
        return (self.api_key, *self.headers.values())


def is_loopback(url: str) -> bool:
    """Whether the address names this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
