"""The API's schemas as TypeScript types of the page: `static/src/app/net/openapi.d.ts`.

Only those that the page's scripts name, and what these consist of. `python -m thinkproject.api_types --write` (part of
`make fix`) has openapi-typescript write them when one of them has changed; only then is it fetched. The first line of
the file holds hashes of the document and of the types, so that a house test sees without it, and without Deno, that
both are in step.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import django

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "static" / "src" / "app"
TYPES = PAGE / "net" / "openapi.d.ts"
CONFIG = ROOT / "static" / "types" / "deno.json"
GENERATOR = "openapi-typescript"
_NAMED = re.compile(r"""(?:\bSchemas|\bcomponents\["schemas"\])\["(\w+)"\]""")
_REFERENCE = re.compile(r'"#/components/schemas/(\w+)"')


def main(arguments: list[str]) -> int:
    """Compare the types with the API, or write them. Returns 1 when they are out of step."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings_test")
    django.setup()
    if is_current():
        return 0
    if "--write" not in arguments:
        return 1
    types = generated(document())
    TYPES.write_text(f"{_head(document(), types)}\n{types}", encoding="utf-8")
    return 0


def document() -> str:
    """Return what the page names of the API's OpenAPI document as JSON text, the same for the same API and page."""
    from thinkproject.api import api  # noqa: PLC0415 - settings must be loaded

    schema = api.get_openapi_schema(path_prefix="/api/v1/")
    known = schema["components"]["schemas"]
    left, named = [*_names_of_page()], {}
    while left:
        name = left.pop()
        if name in known and name not in named:  # the check of the page's types names one that is not known
            named[name] = known[name]
            left += _REFERENCE.findall(json.dumps(known[name], default=str))
    info = {key: schema[key] for key in ("openapi", "info")}
    return json.dumps({**info, "paths": {}, "components": {"schemas": named}}, sort_keys=True, indent=1, default=str)


def _names_of_page() -> set[str]:
    """The schemas that the page's scripts name."""
    scripts = (path for path in PAGE.rglob("*.ts*") if path != TYPES)
    return {name for path in scripts for name in _NAMED.findall(path.read_text(encoding="utf-8"))}


def is_current() -> bool:
    """Whether the file was made of this document, and is as it was made."""
    if not TYPES.exists():
        return False
    head, _, types = TYPES.read_text(encoding="utf-8").partition("\n")
    return head == _head(document(), types)


def generated(schema: str) -> str:
    """Have openapi-typescript write the types of a document. Errors: exits with its own words."""
    from deno import find_deno_bin  # noqa: PLC0415 - only here

    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "api.json", Path(folder) / "api.d.ts"
        source.write_text(schema, encoding="utf-8")
        options = ["--default-non-nullable", "false", "--alphabetize", "--output", str(target)]
        command = [find_deno_bin(), "run", "--quiet", "--frozen", "--allow-all", "--config", str(CONFIG)]
        done = subprocess.run(  # noqa: S603 - fixed arguments
            [*command, GENERATOR, str(source), *options],
            env={**os.environ, "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            sys.exit(f"The types of the API could not be written. {GENERATOR} says:\n{done.stderr.strip()}")
        return target.read_text(encoding="utf-8")


def _head(schema: str, types: str) -> str:
    document_hash, types_hash = (hashlib.sha256(text.encode()).hexdigest()[:20] for text in (schema, types))
    return f"// Written by `make fix`, never by hand. Document {document_hash}, types {types_hash}."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
