"""Contents of many files in one text, so that what none of them has costs no step for each."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

TOGETHER: Final = 64
"""Files in one text."""


class JoinedFiles(NamedTuple):
    """Contents in the order of `paths`, with a newline between two. `sizes`: the bytes of each."""

    paths: Sequence[str]
    sizes: Sequence[int]
    data: bytes

    def each(self) -> Iterator[tuple[str, bytes]]:
        """The files one by one."""
        start = 0
        for path, size in zip(self.paths, self.sizes, strict=True):
            yield path, self.data[start : start + size]
            start += size + 1


def joined(files: Sequence[tuple[str, bytes]]) -> list[JoinedFiles]:
    """Put files together, in their order."""
    return [_one(files[start : start + TOGETHER]) for start in range(0, len(files), TOGETHER)]


def _one(files: Sequence[tuple[str, bytes]]) -> JoinedFiles:
    contents = [data for _, data in files]
    return JoinedFiles([path for path, _ in files], [len(data) for data in contents], b"\n".join(contents))
