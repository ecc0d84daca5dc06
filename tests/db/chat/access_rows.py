"""Every row of every table, to see that nothing changed."""

import io
import zipfile
from typing import Any

from django.apps import apps
from django.contrib.sessions.models import Session as BrowserSession

from chat.models import SignedInBrowser

Rows = dict[str, dict[Any, tuple[Any, ...]]]


def all_rows() -> Rows:
    """Every row of every table, less browser sessions, which signing in writes."""
    found: Rows = {}
    for model in apps.get_models():
        if model not in (BrowserSession, SignedInBrowser):
            columns = [field.attname for field in model._meta.concrete_fields]
            rows = model._base_manager.order_by("pk").values_list("pk", *columns)
            found[model._meta.label] = {row[0]: row for row in rows}
    return found


def keep(before: Rows, after: Rows) -> Rows:
    """What became of the rows that were there before; new ones are left out."""
    return {label: {key: after[label][key] for key in rows if key in after[label]} for label, rows in before.items()}


def unpacked(content: bytes) -> bytes:
    """What a reply says, and the names and texts of an archive."""
    if not zipfile.is_zipfile(io.BytesIO(content)):
        return content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return b"\n".join(part for name in archive.namelist() for part in (name.encode(), archive.read(name)))
