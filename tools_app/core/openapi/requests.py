"""The request of an operation with its arguments: path, query, headers and body as the document has them written. Pure.

A value of the path is one segment of it, and stays one: paths cannot climb.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode

from thinkproject.kernel.jsonvalue import dump
from tools_app.core.openapi.operations import FORM, JSON, MULTIPART, Body, Parameter
from tools_app.errors import ToolInputInvalid

_SEPARATORS: Final = {"form": ",", "spaceDelimited": " ", "pipeDelimited": "|", "simple": ","}
_BOUNDARY: Final = "think-form-part"
_DECODINGS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A request. `target`: path and query, to be added to the base."""

    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""


def write_request(
    path: str,
    values: Sequence[tuple[Parameter, Any]],
    body: tuple[Body, Any] | None = None,
    *,
    query: Mapping[str, str] | None = None,
    reserved: Collection[str] = (),
) -> Written:
    """Write a request. Errors: `ToolInputInvalid` for a value that has no way.

    `query`: what is added to the query. `reserved`: names of the query that no object of the model may use.
    """
    pairs: list[tuple[str, str]] = []
    headers: list[tuple[str, str]] = []
    cookies: list[str] = []
    for parameter, value in values:
        if value is None:
            continue
        if parameter.where == "path":
            path = path.replace(f"{{{parameter.name}}}", path_segment(parameter, value))
        elif parameter.where == "query":
            pairs += _query(parameter, value, reserved)
        elif parameter.where == "header":
            headers.append((parameter.name, _one_line(parameter, _joined(parameter, value))))
        else:
            cookies.append(f"{quote(parameter.name)}={quote(_joined(parameter, value), safe='')}")
    if cookies:
        headers.append(("Cookie", "; ".join(cookies)))
    data = b""
    if body is not None:
        media_type, data = _body(*body)
        headers.append(("Content-Type", media_type))
    text = urlencode([*pairs, *(query or {}).items()], quote_via=quote, safe="")
    return Written(target=f"{path}?{text}" if text else path, headers=tuple(headers), body=data)


def path_segment(parameter: Parameter, value: Any) -> str:
    """A value as one segment of a path. Errors: `ToolInputInvalid` for one that would be none, or more than one."""
    text = _joined(parameter, value)
    plain = text
    for _ in range(_DECODINGS):  # servers and proxies may decode it more than once
        plain = unquote(plain)
    for form in (text, plain):
        if not form or form.strip() in {".", ".."} or re.search(r"[/\\\x00-\x1f\x7f]", form):
            raise ToolInputInvalid(
                f"{parameter.name}: {text[:100]!r} is no part of a path: it is empty, dots alone, or has a slash."
            )
    return quote(text, safe="")


def _query(parameter: Parameter, value: Any, reserved: Collection[str]) -> list[tuple[str, str]]:
    name = parameter.name
    if parameter.is_json:
        return [(name, dump(value))]
    if isinstance(value, dict):
        if parameter.style == "deepObject":
            return [(f"{name}[{key}]", _text(each)) for key, each in value.items()]
        if parameter.explode:
            if taken := sorted(set(value) & set(reserved)):
                raise ToolInputInvalid(f"{parameter.name}: these names are taken: {', '.join(taken)}")
            return [(str(key), _text(each)) for key, each in value.items()]
    if isinstance(value, list) and parameter.explode:
        return [(name, _text(each)) for each in value]
    return [(name, _joined(parameter, value))]


def _joined(parameter: Parameter, value: Any) -> str:
    if parameter.is_json:
        return dump(value)
    separator = _SEPARATORS.get(parameter.style, ",")
    if isinstance(value, dict):
        between = "=" if parameter.explode and parameter.style == "simple" else separator
        return separator.join(f"{key}{between}{_text(each)}" for key, each in value.items())
    if isinstance(value, list):
        return separator.join(_text(each) for each in value)
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else dump(value)


def _one_line(parameter: Parameter, text: str) -> str:
    if any(char in "\r\n\x00" for char in text) or not text.isprintable():
        raise ToolInputInvalid(f"{parameter.name}: a header is one line of characters that can be shown.")
    return text


def _body(body: Body, value: Any) -> tuple[str, bytes]:
    if body.media_type == FORM:
        return FORM, urlencode(_fields(value), quote_via=quote, safe="").encode()
    if body.media_type == MULTIPART:
        return _multipart(_fields(value))
    if body.media_type.startswith("text/") and isinstance(value, str):
        return f"{body.media_type}; charset=utf-8", value.encode()
    return (JSON if body.media_type == "*/*" else body.media_type), dump(value).encode()


def _fields(value: Any) -> list[tuple[str, str]]:
    if not isinstance(value, dict):
        raise ToolInputInvalid("The body of a form is an object.")
    return [
        (str(name), _text(each))
        for name, given in value.items()
        for each in (given if isinstance(given, list) else [given])
        if each is not None
    ]


def _multipart(fields: list[tuple[str, str]]) -> tuple[str, bytes]:
    boundary, number = _BOUNDARY, 0
    while any(boundary in text for _name, text in fields):
        number += 1
        boundary = f"{_BOUNDARY}-{number}"
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{quote(name, safe=" []")}"\r\n\r\n{text}\r\n'
        for name, text in fields
    ]
    return f"{MULTIPART}; boundary={boundary}", f"{''.join(parts)}--{boundary}--\r\n".encode()
