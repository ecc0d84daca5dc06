"""Files that the product makes itself: stored once for one origin, however often it is tried."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.core.files.storage import InMemoryStorage, storages

from chat.errors import AttachmentInvalid, QuotaExceeded
from chat.files import attachments
from chat.files.attachments import MadeBy, store_made, store_original
from chat.models import AgentInstance, Attachment

PNG = b"\x89PNG\r\n\x1a\npixels"
pytestmark = pytest.mark.django_db(transaction=True)


class Rival(InMemoryStorage):
    """Stores for the first writer only after a second one has stored the same."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.rivals: list[Any] = []

    def save(self, name: str | None, content: Any, max_length: int | None = None) -> str:
        while self.rivals:
            self.rivals.pop()()
        return super().save(name, content, max_length)


@pytest.fixture
def rival(settings: Any) -> Rival:
    settings.STORAGES = {**settings.STORAGES, "think": {"BACKEND": f"{__name__}.Rival"}}
    storage = storages["think"]
    assert isinstance(storage, Rival)
    return storage


@pytest.fixture
def owner() -> User:
    return User.objects.create_user("alice")


@pytest.fixture
def made_by(owner: User) -> MadeBy:
    instance = AgentInstance.objects.create(owner=owner, agent="plain", name="room")
    return MadeBy(instance_id=instance.pk, turn_id="t", call_id="c", key="file:0")


def objects(storage: Rival) -> list[str]:
    return sorted(storage.listdir(attachments.FOLDER)[1])


def test_the_same_origin_and_bytes_are_one_file(owner: User, made_by: MadeBy, rival: Rival) -> None:
    first = store_made(owner.pk, PNG, name="a.png", made_by=made_by)
    again = store_made(owner.pk, PNG, name="a.png", made_by=made_by)
    assert again == first
    assert (first.instance_id, first.claimed_at is None) == (made_by.instance_id, False)
    assert objects(rival) == [first.id]


def test_other_bytes_and_other_origins_are_other_files(owner: User, made_by: MadeBy, rival: Rival) -> None:
    other = MadeBy(instance_id=made_by.instance_id, turn_id="t", call_id="c", key="file:1")
    ids = {
        store_made(owner.pk, PNG, name="a.png", made_by=made_by).id,
        store_made(owner.pk, PNG + b"x", name="a.png", made_by=made_by).id,
        store_made(owner.pk, PNG, name="a.png", made_by=other).id,
    }
    assert len(ids) == Attachment.objects.count() == len(objects(rival)) == 3
    assert all(attachments.attachment_id(f"/files/{found}") == found for found in ids)


def test_of_two_writers_at_once_both_get_the_one_file(owner: User, made_by: MadeBy, rival: Rival) -> None:
    stored: list[Attachment] = []
    rival.rivals.append(lambda: stored.append(store_original(owner.pk, b"text", name="o.txt", made_by=made_by)))
    mine = store_original(owner.pk, b"text", name="o.txt", made_by=made_by)
    assert [mine] == stored == list(Attachment.objects.all())
    assert objects(rival) == [mine.id]


def test_the_object_of_a_crash_before_the_row_does_not_stand_in_the_way(
    owner: User, made_by: MadeBy, rival: Rival
) -> None:
    left = f"{attachments.FOLDER}/{made_by.file_id(PNG)}"
    rival.save(left, ContentFile(PNG))
    row = store_made(owner.pk, PNG, name="a.png", made_by=made_by)
    assert row.storage_name != left
    assert attachments.read_bytes(row) == PNG


@pytest.mark.usefixtures("rival")
@pytest.mark.parametrize(
    ("limit", "data", "error"),
    [
        ({"THINK_FILES_QUOTA_BYTES": 3}, PNG, QuotaExceeded),
        ({"THINK_FILE_MAX_BYTES": 3}, PNG, AttachmentInvalid),
        ({}, b"\x00\x01", AttachmentInvalid),
        ({}, b"", AttachmentInvalid),
    ],
)
def test_the_limits_of_files_hold(
    owner: User, made_by: MadeBy, settings: Any, limit: dict[str, int], data: bytes, error: type[Exception]
) -> None:
    for name, value in limit.items():
        setattr(settings, name, value)
    with pytest.raises(error):
        store_made(owner.pk, data, name="a.png", made_by=made_by)
    assert not Attachment.objects.exists()


@pytest.mark.usefixtures("rival")
def test_files_of_a_tool_are_not_paced(owner: User, made_by: MadeBy, settings: Any) -> None:
    settings.THINK_FILES_PER_MINUTE = 1
    for number in range(3):
        store_made(owner.pk, PNG + bytes([number]), name="a.png", made_by=made_by)
    assert Attachment.objects.count() == 3
