"""The documentation of the API as a page: rendered here from the OpenAPI document, nothing of it from elsewhere.

It works without scripts; with one, operations can be tried in place (`static/think_chat/api.js`).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from ninja import NinjaAPI
from ninja.openapi.docs import DocsBase

METHODS: Final = ("get", "post", "put", "patch", "delete")
EXAMPLE_DEPTH: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of a type in words; `ref`: the schema that it names, to link to."""

    text: str
    ref: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A parameter of an operation or a property of a schema. `place`: path, query or header; empty for a property."""

    name: str
    type: Sequence[Piece]
    is_required: bool
    place: str = ""
    description: str = ""
    default: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedResponse:
    """A possible answer of an operation."""

    status: str
    description: str
    type: Sequence[Piece]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedOperation:
    """One operation. `body`: an example as JSON, where it takes one; `is_form`: it takes a form with a file."""

    id: str
    method: str
    path: str
    title: str
    paragraphs: Sequence[str]
    fields: Sequence[Field]
    body_type: Sequence[Piece]
    body: str
    is_form: bool
    responses: Sequence[DescribedResponse]
    curl: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationGroup:
    """The operations of one tag."""

    name: str
    operations: Sequence[DescribedOperation]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A named shape."""

    name: str
    paragraphs: Sequence[str]
    fields: Sequence[Field]
    type: Sequence[Piece]


class ReferencePage(DocsBase):
    """Renders the page."""

    def render_page(self, request: HttpRequest, api: NinjaAPI, **kwargs: Any) -> HttpResponse:
        """Render it for a person who may use the API."""
        document = api.get_openapi_schema(path_params=kwargs)
        context = {
            "api": api,
            "document_url": self.get_openapi_url(api, kwargs),
            "groups": groups_of(document, request.build_absolute_uri("/").rstrip("/")),
            "schemas": schemas_of(document),
        }
        return render(request, "chat/api_reference.html", context)


def groups_of(document: Mapping[str, Any], origin: str) -> list[OperationGroup]:
    """The operations by tag, in the order of the document."""
    found: dict[str, list[DescribedOperation]] = {}
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method in methods:
                operation = methods[method]
                tag = (operation.get("tags") or [_("other")])[0]
                found.setdefault(tag, []).append(_operation(document, origin, method, path, operation))
    return [OperationGroup(name=name, operations=operations) for name, operations in found.items()]


def schemas_of(document: Mapping[str, Any]) -> list[Schema]:
    """The named shapes, by name."""
    schemas: Mapping[str, Mapping[str, Any]] = document.get("components", {}).get("schemas", {})
    return [
        Schema(
            name=name,
            paragraphs=_paragraphs(schema.get("description", "")),
            fields=_properties(schema),
            type=() if schema.get("properties") else _type(schema),
        )
        for name, schema in sorted(schemas.items())
    ]


def _operation(
    document: Mapping[str, Any], origin: str, method: str, path: str, operation: Mapping[str, Any]
) -> DescribedOperation:
    title, *paragraphs = _paragraphs(operation.get("description", "") or operation.get("summary", "")) or [path]
    content: Mapping[str, Any] = operation.get("requestBody", {}).get("content", {})
    schema = next((each["schema"] for each in content.values() if "schema" in each), None)
    is_form = any(kind.startswith("multipart/") for kind in content)
    body = "" if schema is None or is_form else json.dumps(_example(document, schema, EXAMPLE_DEPTH), indent=2)
    return DescribedOperation(
        id=operation.get("operationId", f"{method}-{path}"),
        method=method.upper(),
        path=path,
        title=title,
        paragraphs=paragraphs,
        fields=[_parameter(each) for each in operation.get("parameters", ())],
        body_type=() if schema is None else _type(schema),
        body=body,
        is_form=is_form,
        responses=_responses(document, operation.get("responses", {})),
        curl=_curl(origin, method.upper(), path, body, is_form=is_form),
    )


def _curl(origin: str, method: str, path: str, body: str, *, is_form: bool) -> str:
    lines = [f"curl -X {method} '{origin}{path}'", "  -H 'Authorization: Bearer <token>'"]
    if body:
        compact = json.dumps(json.loads(body)).replace("'", "'\\''")
        lines += ["  -H 'Content-Type: application/json'", f"  -d '{compact}'"]
    if is_form:
        lines.append("  -F 'file=@<path>'")
    return " \\\n".join(lines)


def _responses(document: Mapping[str, Any], responses: Mapping[Any, Any]) -> list[DescribedResponse]:
    shared = document.get("components", {}).get("responses", {})
    found = []
    for status, given in responses.items():
        response = shared.get(_ref_name(given["$ref"]), {}) if "$ref" in given else given
        schemas = [each["schema"] for each in response.get("content", {}).values() if "schema" in each]
        kinds = [Piece(text=kind) for kind in response.get("content", {})]
        shape = _type(schemas[0]) if schemas else kinds[:1]
        found.append(DescribedResponse(status=str(status), description=response.get("description", ""), type=shape))
    return sorted(found, key=lambda each: each.status)


def _parameter(given: Mapping[str, Any]) -> Field:
    schema = given.get("schema", {})
    return Field(
        name=given["name"],
        place=given["in"],
        type=_type(schema),
        is_required=bool(given.get("required")),
        description=given.get("description", "") or schema.get("description", ""),
        default=_default(schema),
    )


def _properties(schema: Mapping[str, Any]) -> list[Field]:
    required = set(schema.get("required", ()))
    return [
        Field(
            name=name,
            type=_type(given),
            is_required=name in required,
            description=given.get("description", ""),
            default=_default(given),
        )
        for name, given in schema.get("properties", {}).items()
    ]


def _default(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema["default"]) if schema.get("default") is not None else ""


def _type(schema: Mapping[str, Any]) -> list[Piece]:
    """A schema's type in words, with the names of others as links."""
    if "$ref" in schema:
        name = _ref_name(schema["$ref"])
        return [Piece(text=name, ref=name)]
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return _joined((_type(each) for each in schema[key]), " | ")
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return [Piece(text=" | ".join(json.dumps(value) for value in values))]
    if schema.get("type") == "array":
        return [Piece(text="["), *_type(schema.get("items", {})), Piece(text="]")]
    name = str(schema.get("format") or schema.get("type") or _("any JSON"))
    return [Piece(text=name)]


def _joined(types: Iterable[Sequence[Piece]], between: str) -> list[Piece]:
    pieces: list[Piece] = []
    for each in types:
        pieces += [Piece(text=between), *each] if pieces else each
    return pieces


def _example(document: Mapping[str, Any], schema: Mapping[str, Any], depth: int) -> Any:
    """A value that fits a schema, for people to change."""
    if "$ref" in schema:
        return _example(document, document["components"]["schemas"].get(_ref_name(schema["$ref"]), {}), depth)
    for key in ("default", "example", "const"):
        if key in schema:
            return schema[key]
    if "enum" in schema:
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return _example(document, schema[key][0], depth)
    if schema.get("type") == "object" or "properties" in schema:
        wanted = schema.get("required") or list(schema.get("properties", {}))[:1]
        named = {name: given for name, given in schema.get("properties", {}).items() if name in wanted}
        return {} if depth <= 0 else {name: _example(document, given, depth - 1) for name, given in named.items()}
    if schema.get("type") == "array":
        return [] if depth <= 0 else [_example(document, schema.get("items", {}), depth - 1)]
    return {"integer": 1, "number": 1, "boolean": False, "null": None}.get(str(schema.get("type")), "…")


def _paragraphs(text: str) -> list[str]:
    return [" ".join(each.split()) for each in text.split("\n\n") if each.strip()]


def _ref_name(ref: str) -> str:
    return ref.rpartition("/")[2]
