"""Answers of an API as a model reads them: values, text, pages as Markdown, and errors in the words of the server."""

import asyncio
from collections.abc import Collection
from http import HTTPStatus
from typing import Any, Final

from thinkproject.kernel.jsonvalue import dump, load
from tools_app.errors import ToolError
from tools_app.fetching.bodies import decode, is_html, is_json, is_text
from tools_app.fetching.rendering import to_markdown
from tools_app.fetching.values import Answered

MAX_ERROR_CHARS: Final = 2_000
HIDDEN: Final = "…"
_WORDS: Final = ("detail", "message", "error_description", "error", "title", "errors")


async def read_answer(answer: Answered, secrets: Collection[str]) -> Any:
    """The value for the model, without these secrets. Errors: `ToolError` for a refusal."""
    media_type, _, rest = _header(answer, "content-type").lower().partition(";")
    media_type = media_type.strip()
    charset = rest.partition("charset=")[2].partition(";")[0].strip(' "')
    text = ""
    if is_text(media_type) or not media_type:
        text = _without(decode(answer.body, charset, is_page=is_html(media_type)), secrets)
    if is_html(media_type):
        text = await asyncio.to_thread(to_markdown, text)
    if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
        raise ToolError(_refusal(answer, _words(text, media_type)))
    if not answer.body:
        return {"status": answer.status}
    if not is_text(media_type) and media_type:
        return {"status": answer.status, "contentType": media_type, "bytes": len(answer.body), "note": "It is no text."}
    if is_json(media_type):
        try:
            return load(text)
        except ValueError:
            return text
    return text


def _refusal(answer: Answered, words: str) -> str:
    said = f"The server answered with status {answer.status}"
    said += f" ({answer.reason})" if answer.reason else ""
    return f"{said}: {words}" if words else f"{said}."


def _words(text: str, media_type: str) -> str:
    """The server's own words about an error."""
    if is_json(media_type):
        try:
            found = load(text)
        except ValueError:
            found = None
        while isinstance(found, dict):
            found = next((found[key] for key in _WORDS if found.get(key)), None)
        if isinstance(found, str):
            return found[:MAX_ERROR_CHARS]
    return text.strip()[:MAX_ERROR_CHARS]


def _without(text: str, secrets: Collection[str]) -> str:
    for secret in secrets:
        for written in (secret, dump(secret)[1:-1]):  # also as JSON has it
            text = text.replace(written, HIDDEN)
    return text


def _header(answer: Answered, name: str) -> str:
    return next((value for key, value in answer.headers if key.lower() == name), "")
