"""Parts of documents that are zip files with XML.

None may declare a document type: without one there are no entities.
"""

import re
import zipfile
from typing import Final
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

MAX_DEPTH: Final = 200
_STRICT: Final = re.compile(r"^http://purl\.oclc\.org/ooxml/(\w+)/")
_USUAL: Final = r"http://schemas.openxmlformats.org/\1/2006/"
"""Of Office files saved as "Strict Open XML" (ISO/IEC 29500, part 1): other names for the same."""


def parse(archive: zipfile.ZipFile, path: str) -> Element:
    """A part as a tree, names as `{namespace}name`. Errors: `KeyError`, `ExpatError`, `ValueError` for a bad one."""
    builder, depth = TreeBuilder(), 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError("The parts of this file are nested too deeply.")
        builder.start(_named(name), {_named(key): value for key, value in attributes.items()})

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(_named(name))

    parser = expat.ParserCreate(namespace_separator="}")
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = _refuse
    parser.Parse(archive.read(path.lstrip("/")), True)
    return builder.close()


def _named(name: str) -> str:
    return f"{{{_STRICT.sub(_USUAL, name)}" if "}" in name else name


def _refuse(*_declaration: object) -> None:
    raise ValueError("A part of this file declares a document type.")
