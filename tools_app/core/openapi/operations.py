"""The operations of an OpenAPI document, each with its parameters and its body. Pure.

OpenAPI 3.0 to 3.2 and Swagger 2 come out in the same shape.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.openapi.references import References
from tools_app.errors import ToolDeclarationInvalid

METHODS: Final = ("get", "head", "post", "put", "patch", "delete")
MAX_OPERATIONS: Final = 5_000
MAX_NAME_CHARS: Final = 64
FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"
JSON: Final = "application/json"
_MARK_CHARS: Final = 8
_COLLECTIONS: Final = {"multi": ("form", True), "ssv": ("spaceDelimited", False), "pipes": ("pipeDelimited", False)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A value outside of the body. `where`: path, query, header or cookie. `style`, `explode`: how it is written."""

    name: str
    where: str
    schema: Any
    is_required: bool = False
    description: str = ""
    style: str = "form"
    explode: bool = True
    is_json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The body of a request."""

    media_type: str
    schema: Any
    is_required: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path. `key`: `GET /pets/{id}`; `name`: of the tool, the same whatever else is allowed."""

    key: str
    name: str
    operation_id: str
    method: str
    path: str
    summary: str
    description: str
    source: Mapping[str, Any] = field(repr=False)
    item: Mapping[str, Any] = field(repr=False)


class ApiDocument:
    """A document whose operations become tools. Errors: `ToolDeclarationInvalid` for what is none."""

    def __init__(self, document: Any) -> None:
        if not isinstance(document, Mapping) or not isinstance(document.get("paths", {}), Mapping):
            raise ToolDeclarationInvalid("This is no OpenAPI document: it is no object with paths.")
        version = str(document.get("openapi") or document.get("swagger") or "")
        if not re.fullmatch(r"3\.[0-2](\..*)?|2(\.0)?", version):
            raise ToolDeclarationInvalid(f"This is no OpenAPI document of version 3.0 to 3.2 or 2.0: {version[:20]!r}")
        self.is_swagger = version.startswith("2")
        self.references = References(document)
        self._document = document

    def operations(self, prefix: str = "") -> list[Operation]:
        """All operations, in the order of the document. `prefix`: of the names of their tools."""
        found = list(self._found())
        if len(found) > MAX_OPERATIONS:
            raise ToolDeclarationInvalid(f"The document has more than {MAX_OPERATIONS} operations.")
        names = _names(found, prefix)
        return [
            Operation(
                key=f"{method.upper()} {path}",
                name=names[number],
                operation_id=_text(source.get("operationId")),
                method=method.upper(),
                path=path,
                summary=_text(source.get("summary")),
                description=_text(source.get("description")),
                source=source,
                item=item,
            )
            for number, (method, path, item, source) in enumerate(found)
        ]

    def parameters(self, operation: Operation) -> list[Parameter]:
        """The parameters of an operation; its own replace those of its path. Errors: `ToolDeclarationInvalid`."""
        found: dict[tuple[str, str], Parameter] = {}
        for given in self._given(operation):
            if given.get("in") in {"body", "formData"}:
                continue
            parameter = self._parameter(given)
            found[parameter.where, parameter.name] = parameter
        in_path = set(re.findall(r"\{([^{}]+)\}", operation.path))
        missing = in_path - {name for where, name in found if where == "path"}
        for name in sorted(missing):
            found["path", name] = Parameter(
                name=name, where="path", schema={"type": "string"}, is_required=True, style="simple", explode=False
            )
        return [each for each in found.values() if each.where != "path" or each.name in in_path]

    def body(self, operation: Operation) -> Body | None:
        """The body of an operation. Errors: `ToolDeclarationInvalid` for one that cannot be made."""
        if self.is_swagger:
            return self._swagger_body(operation)
        if "requestBody" not in operation.source:
            return None
        given = self.references.followed(operation.source["requestBody"])
        content = given.get("content")
        if not isinstance(content, Mapping) or not content:
            raise ToolDeclarationInvalid("Its body has no content.")
        media_type = _chosen(content)
        schema = self.references.followed(content[media_type]).get("schema", {})
        return Body(
            media_type=media_type.partition(";")[0].strip().lower(),
            schema=schema,
            is_required=given.get("required") is True,
            description=_text(given.get("description")),
        )

    def base_url(self, operation: Operation, document_url: str) -> str:
        """The address that an operation's path is added to. Errors: `ToolDeclarationInvalid` where there is none."""
        if self.is_swagger:
            url = self._swagger_base(document_url)
        else:
            levels = (operation.source, operation.item, self._document)
            servers = next((each["servers"] for each in levels if each.get("servers")), [{"url": "/"}])
            url = _server_url(servers)
        url = urljoin(document_url, url) if document_url else url
        if not urlsplit(url).scheme or not urlsplit(url).netloc:
            raise ToolDeclarationInvalid(
                f"The server of the document is {url!r}, which is no whole address: give base_url."
            )
        return url

    def _found(self) -> Iterator[tuple[str, str, Mapping[str, Any], Mapping[str, Any]]]:
        for path, given in (self._document.get("paths") or {}).items():
            if not str(path).startswith("/"):
                continue  # an extension
            item = self.references.followed(given)
            for method in METHODS:
                if isinstance(item.get(method), Mapping):
                    yield method, str(path), item, item[method]

    def _given(self, operation: Operation) -> Iterator[Mapping[str, Any]]:
        for level in (operation.item, operation.source):
            for given in level.get("parameters") or ():
                yield self.references.followed(given)

    def _parameter(self, given: Mapping[str, Any]) -> Parameter:
        where, name = given.get("in"), given.get("name")
        if where not in {"path", "query", "header", "cookie"} or not isinstance(name, str) or not name:
            raise ToolDeclarationInvalid(f"A parameter has no name, or is in an unknown place: {where!r}")
        schema, is_json = given.get("schema"), False
        if self.is_swagger:
            schema = {
                key: value for key, value in given.items() if key not in {"in", "name", "required", "description"}
            }
        elif schema is None and isinstance(given.get("content"), Mapping) and given["content"]:
            media_type, content = next(iter(given["content"].items()))
            if media_type != JSON:
                raise ToolDeclarationInvalid(f"The parameter {name!r} is written as {media_type}, which is not known.")
            schema, is_json = self.references.followed(content).get("schema", {}), True
        style, explode = self._style(given, str(where))
        return Parameter(
            name=name,
            where=str(where),
            schema={} if schema is None else schema,
            is_required=given.get("required") is True or where == "path",
            description=_text(given.get("description")),
            style=style,
            explode=explode,
            is_json=is_json,
        )

    def _style(self, given: Mapping[str, Any], where: str) -> tuple[str, bool]:
        if self.is_swagger:
            style, explode = _COLLECTIONS.get(str(given.get("collectionFormat")), ("form", False))
            return style if where == "query" else "simple", explode
        style = str(given.get("style") or ("form" if where in {"query", "cookie"} else "simple"))
        known = {"form", "spaceDelimited", "pipeDelimited", "deepObject"} if where == "query" else {"simple", "form"}
        if style not in known:
            raise ToolDeclarationInvalid(
                f"The parameter {given.get('name')!r} has a style that is not known: {style!r}"
            )
        return style, given["explode"] is True if "explode" in given else style == "form"

    def _swagger_body(self, operation: Operation) -> Body | None:
        given = list(self._given(operation))
        for each in given:
            if each.get("in") == "body":
                return Body(
                    media_type=JSON,
                    schema=each.get("schema", {}),
                    is_required=each.get("required") is True,
                    description=_text(each.get("description")),
                )
        fields = [each for each in given if each.get("in") == "formData"]
        if not fields:
            return None
        properties = {
            str(each.get("name")): {k: v for k, v in each.items() if k not in {"in", "name", "required"}}
            for each in fields
        }
        required = [str(each.get("name")) for each in fields if each.get("required") is True]
        schema: JSONObject = {"type": "object", "properties": properties, "required": required}
        consumes = operation.source.get("consumes") or self._document.get("consumes") or [FORM]
        media_type = MULTIPART if MULTIPART in consumes and FORM not in consumes else FORM
        return Body(media_type=media_type, schema=schema, is_required=bool(required))

    def _swagger_base(self, document_url: str) -> str:
        base = _text(self._document.get("basePath")) or "/"
        host, schemes = _text(self._document.get("host")), self._document.get("schemes") or []
        if not host:
            return base
        usual = urlsplit(document_url).scheme or "https"
        scheme = "https" if "https" in schemes else str(schemes[0]) if schemes else usual
        return f"{scheme}://{host}{base}"


def _chosen(content: Mapping[str, Any]) -> str:
    """The media type to send, the plainest first. Errors: `ToolDeclarationInvalid` where none can be made."""
    kinds = {str(key).partition(";")[0].strip().lower(): str(key) for key in content}
    for kind, key in kinds.items():
        if kind == JSON or kind.endswith("+json"):
            return key
    for kind in (FORM, MULTIPART):
        if kind in kinds:
            return kinds[kind]
    for kind, key in kinds.items():
        if kind.startswith("text/"):
            return key
    if "*/*" in kinds:
        return kinds["*/*"]
    raise ToolDeclarationInvalid(f"Its body is {', '.join(kinds)}, which cannot be made.")


def _server_url(servers: Any) -> str:
    if not isinstance(servers, list) or not servers or not isinstance(servers[0], Mapping):
        raise ToolDeclarationInvalid("The servers of the document are no list of objects.")
    variables = servers[0].get("variables") or {}
    url = str(servers[0].get("url") or "/")
    for name, variable in variables.items():
        url = url.replace(f"{{{name}}}", str(variable.get("default", "")))
    return url


def _names(found: list[tuple[str, str, Mapping[str, Any], Mapping[str, Any]]], prefix: str) -> list[str]:
    """Names of tools: of the operation's id or its path, at most 64 characters, each once."""
    long = [
        re.sub(r"[^A-Za-z0-9_-]+", "_", prefix + (_text(source.get("operationId")) or f"{method}{path}")).strip("_")
        for method, path, _item, source in found
    ]
    keys = [f"{method.upper()} {path}" for method, path, _item, _source in found]
    counted = Counter(name.lower() for name in long)
    return [
        name if 0 < len(name) <= MAX_NAME_CHARS and counted[name.lower()] == 1 else _marked(name, key)
        for name, key in zip(long, keys, strict=True)
    ]


def _marked(name: str, key: str) -> str:
    mark = hashlib.sha256(key.encode()).hexdigest()[:_MARK_CHARS]
    return f"{name[: MAX_NAME_CHARS - _MARK_CHARS - 1]}_{mark}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
