"""Each operation of the API that takes a file has the limit of its files, and no other has a larger one than JSON."""

import re
from typing import Any

from django.conf import settings
from django.test import override_settings

from chat.files.conf import file_settings
from thinkproject.api import api
from thinkproject.web.body_limits import MULTIPART_BYTES, limit_of
from tools_app.workspace import unpacking
from tools_app.workspace.conf import workspace_settings

FILES = {"multipart/form-data", "application/octet-stream", "application/zip"}


def operations() -> list[tuple[str, dict[str, Any]]]:
    paths = api.get_openapi_schema(path_prefix="/api/v1/")["paths"]
    return [(re.sub(r"{\w+}", "x", path), each) for path, methods in paths.items() for each in methods.values()]


def takes_a_file(operation: dict[str, Any]) -> bool:
    return bool(FILES & set(operation.get("requestBody", {}).get("content", {})))


def test_what_takes_a_file_has_the_limit_of_files() -> None:
    uploads = {path for path, operation in operations() if takes_a_file(operation)}
    assert {path.rpartition("x")[2] or path: limit_of(path) for path in uploads} == {
        "/api/v1/files": file_settings.max_bytes + MULTIPART_BYTES,
        "/api/v1/archives": file_settings.archive_max_bytes + MULTIPART_BYTES,
        "/api/v1/imports": file_settings.import_max_bytes + MULTIPART_BYTES,
        "/imports": file_settings.import_max_bytes + MULTIPART_BYTES,
        "/workspace/content": workspace_settings.file_max_bytes,
        "/files/content": workspace_settings.file_max_bytes,
        "/workspace/archive": unpacking.ARCHIVE_BYTES + MULTIPART_BYTES,
    }


def test_all_others_have_the_limit_of_json() -> None:
    uploads = {path for path, operation in operations() if takes_a_file(operation)}
    others = {path for path, operation in operations() if "requestBody" in operation} - uploads
    assert len(others) > 30
    assert {limit_of(path) for path in others} == {settings.DATA_UPLOAD_MAX_MEMORY_SIZE}


def test_the_limits_of_requests_and_imports_are_settings() -> None:
    with override_settings(THINK_REQUEST_MAX_BYTES=10, THINK_IMPORT_MAX_BYTES=20):
        assert limit_of("/nowhere/") == 10
        assert limit_of("/api/v1/imports") == 20 + MULTIPART_BYTES
