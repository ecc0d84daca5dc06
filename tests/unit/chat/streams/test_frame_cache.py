"""A frame is built once for all sockets of a process."""

from chat.streams.frame_cache import FrameCache
from chat.streams.records import Record


class Builder:
    """Counts how often a frame is built."""

    def __init__(self) -> None:
        self.built: list[int] = []

    def __call__(self, record: Record) -> str:
        self.built.append(record.offset)
        return f"<{record.text}>"


def test_sockets_share_a_frame() -> None:
    cache, build = FrameCache(), Builder()
    frames = [cache.frame("trn_1", Record(0, "a"), build) for _ in range(3)]
    assert (frames, build.built) == (["<a>"] * 3, [0])


def test_streams_offsets_and_kinds_are_distinguished() -> None:
    cache, build = FrameCache(), Builder()
    cache.frame("trn_1", Record(0, "a"), build)
    cache.frame("trn_2", Record(0, "a"), build)
    cache.frame("trn_1", Record(1, "a"), build)
    cache.frame("trn_1", Record(0, "a"), build, kind="replay")
    assert len(build.built) == 4


def test_a_new_life_of_a_stream_gets_new_frames() -> None:
    cache, build = FrameCache(), Builder()
    assert cache.frame("trn_1", Record(0, "a"), build) == "<a>"
    assert cache.frame("trn_1", Record(0, "b"), build) == "<b>"


def test_the_oldest_goes_first() -> None:
    cache, build = FrameCache(max_entries=2), Builder()
    for offset in (0, 1, 0, 2, 0, 1):
        cache.frame("trn_1", Record(offset, "a"), build)
    assert build.built == [0, 1, 2, 1]
