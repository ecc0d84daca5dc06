"""The page about the API names every operation, and no other."""

import re
from pathlib import Path

from thinkproject.api import api

PAGE = Path(__file__).resolve().parents[5] / "docs" / "reference" / "api.md"


def test_the_page_lists_every_operation_with_its_path() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([A-Z]+) `([^`]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    written = {(name, method, re.sub(r"{\w+}", "{}", path)) for name, method, path in rows}
    schema = api.get_openapi_schema(path_prefix="/api/v1/")
    real = {
        (operation["operationId"], method.upper(), re.sub(r"{\w+}", "{}", path.removeprefix("/api/v1")))
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    }
    assert written == real
