"""Pages that were fetched, as Markdown."""

from tools_app.core import web_pages
from tools_app.fetching.errors import FetchFailed


def to_markdown(page: str) -> str:
    """Convert HTML as `tools_app.core.web_pages` does. Errors: `FetchFailed`."""
    try:
        return web_pages.to_markdown(page)
    except ValueError as error:
        raise FetchFailed("request_failed", "The page could not be converted to Markdown.") from error
