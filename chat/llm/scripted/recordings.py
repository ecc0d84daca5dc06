"""Recorded answers of providers: streams as they were sent, with what they mean and what has to go back.

A recording is a file `<provider>/<name>.sse`: the body of a response, byte for byte, so that any server can play it.
Comments in front of it (lines that begin with a colon, which readers of such streams skip) hold a JSON object about it.
The format is described in `docs/reference/recordings.md`.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One answer. `facts`: the object in front of it. `body`: what is behind it, the bytes that a server sends."""

    name: str
    facts: JSONObject
    body: bytes

    @property
    def media_type(self) -> str:
        """The response's content type."""
        return str(self.facts.get("media_type", "text/event-stream"))

    @property
    def returns(self) -> list[JSONObject]:
        """The messages that the next request to the same model has for this answer, results of tools apart."""
        return list(self.facts.get("next") or [])

    def missing_in(self, messages: list[JSONObject]) -> JSONObject | None:
        """The first message that a later request lacks; nothing where all are in it as they have to be."""
        return next((message for message in self.returns if message not in messages), None)

    def refusal_of(self, messages: list[JSONObject]) -> str:
        """The provider's words for a later request in which a call of this answer lacks what it came with.

        Calls that the request does not have are not missed, and what the provider takes in the place of its data is no
        lack either. Empty: it takes the request.
        """
        taken = list(self.facts.get("taken_instead", ()))
        for expected in self.returns:
            for wanted in expected.get("tool_calls") or ():
                for sent in messages:
                    call = next((c for c in sent.get("tool_calls") or () if c["id"] == wanted["id"]), None)
                    if call is not None and not (_has(sent, expected, taken) and _has(call, wanted, taken)):
                        return str(self.facts.get("refusal") or f"The history lacks what {self.name} wants back.")
        return ""


_USUAL: Final = frozenset({"role", "content", "tool_calls", "id", "type", "function"})


def _has(sent: JSONObject, wanted: JSONObject, taken: list[JSONValue]) -> bool:
    extras = {key: value for key, value in wanted.items() if key not in _USUAL}
    return all(sent.get(key) == value or (key in sent and sent[key] in taken) for key, value in extras.items())


def read_recording(folder: Path, name: str) -> Recording:
    """Read a recording. Errors: `OSError`, and `ValueError` for one that does not begin with an object."""
    data = (folder / f"{name}.sse").read_bytes()
    comments, rest = [], data
    while rest.startswith(b":"):
        line, _, rest = rest.partition(b"\n")
        comments.append(line[1:].decode())
    facts = json.loads("".join(comments))
    if not isinstance(facts, dict):
        raise ValueError(f"{name}.sse does not begin with an object")
    return Recording(name=name, facts=facts, body=rest.removeprefix(b"\n"))
