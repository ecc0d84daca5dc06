"""Skills in a Django storage: on disk, in a bucket, as `STORAGES` configures."""

from collections.abc import Collection

from django.core.files.storage import Storage, storages

from sessions_app.context.skill_catalog import BlockPlace, Documents
from sessions_app.core.context.documents import FILE_NAME

__all__ = ["StorageSkills"]


class StorageSkills(Documents):
    """A provider of the skills below a prefix of a storage: `<prefix><key>/SKILL.md`, or `<prefix><key>.md`.

    `storage` is one of `STORAGES` by its name, or an object. With `keys` only these are offered.
    """

    def __init__(
        self,
        prefix: str = "skills/",
        *,
        storage: str | Storage = "default",
        keys: Collection[str] | None = None,
        seconds: float = 60.0,
    ) -> None:
        super().__init__(_Bucket(prefix.strip("/"), storage), keys=keys, seconds=seconds)


class _Bucket:
    def __init__(self, prefix: str, storage: str | Storage) -> None:
        self._prefix = prefix
        self._given = storage

    @property
    def _storage(self) -> Storage:
        return storages[self._given] if isinstance(self._given, str) else self._given

    def places(self) -> list[BlockPlace]:
        try:
            folders, files = self._storage.listdir(self._prefix)
        except FileNotFoundError:
            return []
        found = [BlockPlace(name, self._below(f"{name}/{FILE_NAME}")) for name in folders]
        found += [BlockPlace(name.removesuffix(".md"), self._below(name)) for name in files if name.endswith(".md")]
        return sorted((place for place in found if place.key), key=lambda place: place.key)

    def read(self, address: str, max_bytes: int) -> bytes | None:
        try:
            with self._storage.open(address, "rb") as file:
                content: bytes = file.read(max_bytes)
                return content
        except FileNotFoundError:
            return None

    def _below(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name
