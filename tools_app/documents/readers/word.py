"""Word documents: headings, lists, tables and notes. Pictures are named."""

from io import BytesIO
from typing import Any, Final

import mammoth
from mammoth import html

from tools_app.core.web_pages import to_markdown
from tools_app.documents.readers.archive import check_archive
from tools_app.documents.readers.text import NoText, cleaned

_STYLES: Final = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => h2:fresh"


def read_word(data: bytes) -> str:
    """The document as Markdown. Errors: `NoText`; `ValueError` and the like for a damaged one."""
    check_archive(data)
    result = mammoth.convert_to_html(BytesIO(data), convert_image=_picture, style_map=_STYLES)
    text = cleaned(to_markdown(result.value))
    if not text:
        raise NoText("This document has no text.")
    return text


def _picture(image: Any) -> list[Any]:
    return [html.text(f"[Picture: {image.alt_text}]" if image.alt_text else "[Picture]")]
