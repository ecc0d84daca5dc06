"""Pages as Markdown, which models read with fewer tokens than HTML."""

from typing import Final

import html_to_markdown
from html_to_markdown import ConversionOptions, PreprocessingOptions

_OPTIONS: Final = ConversionOptions(
    extract_metadata=False,
    skip_images=True,
    hidden_content="drop",  # what people do not see is not for models either
    include_document_structure=False,
    preprocessing=PreprocessingOptions(enabled=True),
)

_FAILURES: Final = (
    RuntimeError,
    html_to_markdown.ConversionError,
    html_to_markdown.InputTooLargeError,
    html_to_markdown.InvalidInputError,
    html_to_markdown.OtherError,
    html_to_markdown.PanicError,
    html_to_markdown.ParseError,
    html_to_markdown.SanitizationError,
)


def to_markdown(page: str) -> str:
    """Convert HTML. Scripts, styles and pictures are left out. Errors: `ValueError` for what cannot be converted."""
    try:
        result = html_to_markdown.convert(page, _OPTIONS)
    except _FAILURES as error:
        raise ValueError("The page could not be converted to Markdown.") from error
    return (result.content or "").strip()
