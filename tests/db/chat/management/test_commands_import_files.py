"""`import_files`: a folder or an archive becomes the files of a conversation."""

import tarfile
from io import StringIO
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command

from chat.agent.base import InstanceKey
from chat.instances.rows import key_of
from chat.instances.workspaces import InstanceWorkspace
from chat.models import AgentInstance
from tests.db.chat.conftest import ApiClient

pytestmark = pytest.mark.django_db(transaction=True)


def run(source: Path, **options: str) -> str:
    out = StringIO()
    call_command("import_files", str(source), user="alice", stdout=out, **options)
    return out.getvalue()


@pytest.fixture
def tally_folder(tmp_path: Path) -> Path:
    made = tmp_path / "tally"
    (made / ".git").mkdir(parents=True)
    (made / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (made / "out").symlink_to("/etc/passwd")
    return made


def read(key: InstanceKey, path: str) -> str | None:
    return async_to_sync(InstanceWorkspace(key).read_file)(path)


def test_a_folder_and_a_packed_one_become_files_of_a_conversation(
    alice: User, tally_folder: Path, tmp_path: Path
) -> None:
    folder = tally_folder
    lines = run(folder).splitlines()
    made = AgentInstance.objects.get(owner=alice)
    assert lines == [
        "left out: out: it leads out of the folder",
        f"1 files are in /c/{made.pk}",
    ]
    assert made.title == "tally"
    assert read(key_of(made), "/.git/HEAD") == "ref: refs/heads/main\n"
    (folder / "out").unlink()
    packed = tmp_path / "tally.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(folder, "tally")
    assert run(packed, conversation=made.pk, target="/packed") == f"1 files are in /c/{made.pk}\n"
    assert read(key_of(made), "/packed/tally/.git/HEAD") == "ref: refs/heads/main\n"
    sent = SimpleUploadedFile("tally.tar.gz", packed.read_bytes())
    reply = ApiClient(alice).http.post(f"/api/v1/instances/{made.pk}/workspace/archive?path=/sent", {"file": sent})
    assert (reply.status_code, read(key_of(made), "/sent/tally/.git/HEAD")) == (200, "ref: refs/heads/main\n")
    with pytest.raises(CommandError, match="There is no"):
        run(tmp_path / "absent")
    (folder / "out").symlink_to("../..")
    with tarfile.open(packed, "w") as archive:
        archive.add(folder, "tally")
    with pytest.raises(CommandError, match="leads out"):
        run(packed, conversation=made.pk, target="/refused")
    assert read(key_of(made), "/refused/tally/.git/HEAD") is None
