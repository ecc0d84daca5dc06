"""Pictures as every provider takes them: upright, at most 2048 pixels on each side, PNG or JPEG."""

import warnings
from io import BytesIO
from typing import Final

from PIL import Image, ImageOps, UnidentifiedImageError

from tools_app.core.files.kinds import HEIC, MAX_PICTURE_BYTES, MAX_SIDE
from tools_app.documents.readers.text import NoText

MAX_PIXELS: Final = 200_000_000
_MODES: Final = frozenset({"1", "L", "LA", "P", "RGB", "RGBA"})
"""Pixels that every provider takes: not those for printers, and no finer values of grey."""
_ORIENTATION: Final = 0x0112
_LOSSLESS: Final = frozenset({"PNG", "TIFF", "BMP", "GIF"})
_QUALITIES: Final = (85, 70, 50)
DAMAGED: Final = "This picture is damaged and cannot be shown. Save it again as PNG or JPEG."


def read_picture(data: bytes, media_type: str) -> tuple[bytes, str]:
    """The picture and its media type; the same bytes where nothing has to be changed. Errors: `NoText`.

    What a camera notes beside a picture, such as the place, is not kept in one that is changed.
    """
    if media_type == HEIC:
        from pi_heif import register_heif_opener  # noqa: PLC0415 - a library of its own, for one format

        register_heif_opener(thumbnails=False)
    Image.MAX_IMAGE_PIXELS = MAX_PIXELS
    warnings.simplefilter("error", Image.DecompressionBombWarning)
    try:
        with Image.open(BytesIO(data)) as picture:
            if _is_fine(picture, data, media_type):
                picture.load()
                return data, media_type
            picture.draft("RGB", (MAX_SIDE, MAX_SIDE))
            return _made(picture)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise NoText("This picture has too many pixels. Save it smaller, then attach it again.") from error
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, EOFError) as error:
        raise NoText(DAMAGED) from error


def _is_fine(picture: Image.Image, data: bytes, media_type: str) -> bool:
    is_taken = media_type in {"image/png", "image/jpeg", "image/gif", "image/webp"}
    has_usual_pixels = picture.mode in _MODES
    is_upright = picture.getexif().get(_ORIENTATION, 1) == 1
    return (
        is_taken
        and has_usual_pixels
        and is_upright
        and max(picture.size) <= MAX_SIDE
        and len(data) <= MAX_PICTURE_BYTES
    )


def _made(picture: Image.Image) -> tuple[bytes, str]:
    profile = picture.info.get("icc_profile")
    upright = ImageOps.exif_transpose(picture)
    has_alpha = upright.has_transparency_data
    shown = _eight_bits(upright).convert("RGBA" if has_alpha else "RGB")
    shown.thumbnail((MAX_SIDE, MAX_SIDE), Image.Resampling.LANCZOS)
    if has_alpha or picture.format in _LOSSLESS:
        made = BytesIO()
        shown.save(made, "PNG", optimize=True)
        if made.tell() <= MAX_PICTURE_BYTES:
            return made.getvalue(), "image/png"
    if has_alpha:
        ground = Image.new("RGB", shown.size, "white")
        ground.paste(shown, mask=shown.getchannel("A"))
        shown = ground
    return _jpeg(shown, profile), "image/jpeg"


def _eight_bits(picture: Image.Image) -> Image.Image:
    """A picture of finer grey values in 256 of them; `convert` would make all that is bright white."""
    if picture.mode.startswith("I;16"):
        return picture.point(lambda value: value * (1 / 256)).convert("L")
    if picture.mode not in {"I", "F"}:
        return picture
    lowest, highest = picture.getextrema()
    assert isinstance(lowest, int | float)
    assert isinstance(highest, int | float)
    if lowest >= 0 and 1 < highest <= 255:
        return picture
    scale = 255 / max(highest - lowest, 1e-9)
    return picture.point(lambda value: value * scale + -lowest * scale).convert("L")


def _jpeg(picture: Image.Image, profile: bytes | None) -> bytes:
    for quality in _QUALITIES:
        made = BytesIO()
        picture.save(made, "JPEG", quality=quality, icc_profile=profile, exif=b"")
        if made.tell() <= MAX_PICTURE_BYTES:
            break
    return made.getvalue()
