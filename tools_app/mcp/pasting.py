"""Servers of a pasted configuration: shown first with all that is missing, added when a person has confirmed.

All functions are sync and run on the database bridge. Who may add servers, and programs, was decided before.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from django.db import transaction

from thinkproject.kernel.phrases import Phrase
from tools_app.core.mcp.configurations import Configuration, PastedServer, read_configuration
from tools_app.core.mcp.servers import McpServerSpec
from tools_app.core.mcp.variables import Variable
from tools_app.errors import McpServerInvalid, McpServersFull
from tools_app.mcp import rows
from tools_app.mcp.rows import Place
from tools_app.models.mcp import McpServer

_STAND_IN: Final = "x"
_URL_STAND_IN: Final = "https://x.invalid/"
"""For what is not given yet, so that all else of a server can be checked."""


class PastedState(StrEnum):
    """The state of a server of a configuration."""

    NEW = "new"  # it can be added
    INCOMPLETE = "incomplete"  # values are missing
    EXISTS = "exists"  # it is there already, and stays as it is
    REFUSED = "refused"  # with a reason
    ADDED = "added"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """One server of a configuration, and what can be done with it. `url` and `command` without secrets.

    `reason`: why it is refused. `missing`: keys of variables without a value. `exposes`: keys of secrets in the
    address, which is not stored encrypted. `server`: the row, where there is one.
    """

    pasted: PastedServer
    state: PastedState
    variables: tuple[Variable, ...] = ()
    reason: Phrase | str | None = None
    missing: tuple[str, ...] = ()
    exposes: tuple[str, ...] = ()
    server: McpServer | None = None


def propose(text: str, place: Place, values: Mapping[str, str], *, allows_programs: bool) -> list[Proposed]:
    """Read a configuration, and say what would become of each of its servers. Nothing is written. One query.

    Errors: `McpServerInvalid` for a text that is no configuration.
    """
    found = read_configuration(text)
    there = {server.name: server for server in rows.servers_in(place)}
    return [_propose(found, pasted, values, there.get(pasted.name), allows_programs) for pasted in found.servers]


@transaction.atomic
def add_pasted(
    text: str, place: Place, values: Mapping[str, str], *, names: Collection[str] | None, allows_programs: bool
) -> list[Proposed]:
    """Add the servers of a configuration that can be added, of these names or all. The same once more adds nothing.

    Those that cannot be are in the list with the reason. Durability: committed together.
    Errors: `McpServerInvalid` for a text that is no configuration.
    """
    proposed = propose(text, place, values, allows_programs=allows_programs)
    found = read_configuration(text)
    return [
        _add(found, each, place, values, allows_programs)
        if each.state is PastedState.NEW and (names is None or each.pasted.name in names)
        else each
        for each in proposed
    ]


def _propose(
    found: Configuration,
    pasted: PastedServer,
    values: Mapping[str, str],
    there: McpServer | None,
    allows_programs: bool,
) -> Proposed:
    variables = found.variables_of(pasted)
    missing = tuple(each.key for each in variables if not values.get(each.key) and each.default is None)
    in_way = {each.key for each in found.variables_of(replace(pasted, headers={}, env={}))}
    is_way_open = not in_way.isdisjoint(missing)
    try:
        spec = found.spec_of(pasted, {**_given(values), **dict.fromkeys(missing, _STAND_IN)})
        if pasted.url and is_way_open:
            spec = replace(spec, url=_URL_STAND_IN)
        rows.check_place(spec, allows_programs=allows_programs)
    except McpServerInvalid as error:
        return Proposed(pasted=pasted, state=PastedState.REFUSED, reason=error.phrase)
    state, reason = PastedState.INCOMPLETE if missing else PastedState.NEW, None
    if there is not None and not is_way_open:
        is_same = not there.is_declared and _is_of(there, spec, is_whole=not missing)
        state = PastedState.EXISTS if is_same else PastedState.REFUSED
        reason = None if is_same else rows.name_taken(pasted.name)
    return Proposed(
        pasted=pasted,
        state=state,
        variables=variables,
        reason=reason,
        missing=missing,
        exposes=tuple(each.key for each in variables if each.is_secret and pasted.url and each.key in in_way),
        server=there if state is PastedState.EXISTS else None,
    )


def _given(values: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in values.items() if value}


def _is_of(there: McpServer, spec: McpServerSpec, *, is_whole: bool) -> bool:
    """Whether a row is of this server. Where secrets are missing, by its address or program alone."""
    if is_whole:
        return rows.is_of(there, spec)
    return (there.url, list(there.command)) == (spec.url, list(spec.command))


def _add(
    found: Configuration, proposed: Proposed, place: Place, values: Mapping[str, str], allows_programs: bool
) -> Proposed:
    pasted = proposed.pasted
    try:
        with transaction.atomic():
            spec = found.spec_of(pasted, values)
            server, is_new = rows.add_server(spec, place, allows_programs=allows_programs)
            if is_new and not pasted.is_enabled:
                server = rows.set_server(server, is_enabled=False)
    except (McpServerInvalid, McpServersFull) as error:
        return Proposed(pasted=pasted, state=PastedState.REFUSED, reason=error.phrase)
    state = PastedState.ADDED if is_new else PastedState.EXISTS
    return Proposed(pasted=pasted, state=state, variables=proposed.variables, server=server)
