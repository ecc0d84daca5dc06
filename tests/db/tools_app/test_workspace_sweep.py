"""The command that prunes old data sweeps the objects of workspaces too."""

from io import StringIO

import pytest
from django.core.files.base import ContentFile
from django.core.management import call_command

from thinkproject.kernel.object_storage import object_storage
from tools_app.workspace import objects


@pytest.mark.django_db
def test_prune_removes_objects_without_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "ORPHAN_HOURS", -1)
    name = object_storage().save(f"{objects.FOLDER}/obj_orphan", ContentFile(b"x"))
    call_command("prune", "workspaces", stdout=StringIO())
    assert not object_storage().exists(name)
