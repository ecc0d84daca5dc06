"""The exact requests that a turn sent to its model, put together again from the step records. Pure.

A record holds what the step before had not, in this turn or in the one that it names, and a hash of the whole, by which
a reader sees that nothing is missing (`chat/core/loop/request_records.py`).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from chat.core.loop.request_records import NOTHING_SENT, SentRequest, body_of, is_whole, request_in, restored
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRequest:
    """One model call's request, without credentials. `is_exact`: its hash equals that of the sent request."""

    step_key: str
    body: JSONObject
    is_exact: bool


def provider_requests(
    records: Iterable[tuple[str, JSONValue]], before: SentRequest = NOTHING_SENT
) -> list[ProviderRequest]:
    """Requests of a turn, in order of its step records (key and value); steps without one are left out.

    `before`: the request of an earlier turn that the first record goes on from.
    """
    found: list[ProviderRequest] = []
    for step_key, record in records:
        stored = request_in(record)
        if stored is not None:
            before = restored(stored, before)
            body = body_of(stored, before)
            found.append(ProviderRequest(step_key=step_key, body=body, is_exact=is_whole(stored, body)))
    return found
