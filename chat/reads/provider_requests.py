"""The exact requests that a turn sent to its model, put together again from the step records. Pure.

A record holds what the step before had not: how many leading messages are shared, the rest of the body, and a hash of
the whole, by which a reader sees that nothing is missing.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRequest:
    """One model call's request, without credentials. `is_exact`: its hash equals that of the sent request."""

    step_key: str
    body: JSONObject
    is_exact: bool


def provider_requests(records: Iterable[tuple[str, JSONValue]]) -> list[ProviderRequest]:
    """Requests of a turn, in order of its step records (key and value); steps without one are left out."""
    found: list[ProviderRequest] = []
    before: list[JSONValue] = []
    for step_key, record in records:
        stored = record.get("request") if isinstance(record, dict) else None
        if not isinstance(stored, dict) or not isinstance(stored.get("body"), dict):
            continue
        key = str(stored.get("messages_key", "messages"))
        shared = stored.get("shared_messages")
        fresh = stored["body"].get(key)
        before = before[: shared if isinstance(shared, int) else 0] + (fresh if isinstance(fresh, list) else [])
        body = {**stored["body"], key: before}
        found.append(ProviderRequest(step_key=step_key, body=body, is_exact=fingerprint(body) == stored.get("hash")))
    return found
