"""Extensions that an agent's class brings. Their sources are run once in a process to learn their tools."""

import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import fingerprint
from tools_app.core.extensions.manifest import parse_manifest
from tools_app.core.extensions.surface import Surface
from tools_app.errors import ExtensionInvalid
from tools_app.extensions.guest import clean_source
from tools_app.extensions.loaded import STATIC, LoadedExtension
from tools_app.extensions.runs import describe
from tools_app.extensions.services import check_network, hash_of

logger = logging.getLogger(__name__)

KEPT: Final = 256
_surfaces: OrderedDict[str, Surface] = OrderedDict()
"""What sources said of themselves, the latest last: running one again would say the same."""


async def static_extensions(given: Sequence[Any]) -> list[LoadedExtension]:
    """The extensions of a class, as `get_extensions()` gives them: `{manifest, source}` each.

    One that cannot be loaded is left out, and the log has the reason: a turn begins all the same.
    """
    found = []
    for each in given:
        try:
            found.append(await _loaded(each))
        except ThinkError as error:
            extra = {"action": "extension_not_loaded", "code": error.code, "reason": error.message}
            logger.warning("an extension of the agent's class cannot be loaded", extra=extra)
    return found


async def _loaded(given: Any) -> LoadedExtension:
    if not isinstance(given, dict) or set(given) != {"manifest", "source"}:
        raise ExtensionInvalid("get_extensions() gives objects with a manifest and a source.")
    manifest, source = parse_manifest(given["manifest"]), clean_source(str(given["source"]))
    check_network(manifest.permissions)
    key = fingerprint([manifest.to_json(), source])
    if key not in _surfaces:
        _surfaces[key] = await describe(source, manifest)
        while len(_surfaces) > KEPT:
            _surfaces.popitem(last=False)
    return LoadedExtension(
        pk=None,
        level=STATIC,
        name=manifest.name,
        manifest=manifest,
        granted=manifest.permissions,
        surface=_surfaces[key],
        sha256=hash_of(source),
        source=source,
    )
