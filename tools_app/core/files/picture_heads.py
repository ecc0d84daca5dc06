"""The head of a picture: its sides, and whether a camera has noted something beside it. Pure, without decoding it."""

import struct
from typing import Final

_JPEG_SIZES: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_JPEG_EXIF: Final = 0xE1
_BITS: Final = 8  # of a channel
_INKS: Final = 4  # channels of a picture for a printer
_LONE: Final = frozenset({0x01, *range(0xD0, 0xD9)})


def is_ready(data: bytes, media_type: str, *, max_side: int, max_bytes: int) -> bool:
    """Whether a picture can be sent as it is: one of a usual format, small enough, and with no orientation to follow.

    Where the head does not show it the answer is no.
    """
    if len(data) > max_bytes:
        return False
    match media_type:
        case "image/png":
            if len(data) < 25 or data[24] > _BITS:
                return False
            sides = struct.unpack(">II", data[16:24])
        case "image/gif":
            sides = struct.unpack("<HH", data[6:10]) if len(data) >= 10 else (0, 0)
        case "image/jpeg":
            found = _jpeg_sides(data)
            if found is None:
                return False
            sides = found
        case _:
            return False
    return bool(0 < max(sides) <= max_side)


def _jpeg_sides(data: bytes) -> tuple[int, int] | None:
    """Width and height of a JPEG without notes of a camera; `None` where it has some, or is made for a printer."""
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        kind = data[at + 1]
        if kind in _JPEG_SIZES:
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return None if data[at + 9] >= _INKS else (width, height)
        if kind == _JPEG_EXIF:
            return None
        at += 2 if kind in _LONE else 1 if kind == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4])
    return 0, 0
