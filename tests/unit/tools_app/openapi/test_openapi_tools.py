"""Operations of OpenAPI documents as tools, against a real server on this machine."""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.budget import examples
from tests.unit.tools_app.core.files.calling import call
from tools_app.core.openapi.operations import ApiDocument, Parameter
from tools_app.core.openapi.requests import path_segment
from tools_app.core.origins import Origin
from tools_app.core.schema_check import problems
from tools_app.core.tool import NAME_PATTERN, Tool
from tools_app.errors import ToolDeclarationInvalid, ToolError, ToolInputInvalid
from tools_app.fetching.values import FetchLimits
from tools_app.openapi.documents import load_openapi_document, read_document
from tools_app.openapi.tools import OpenApiOptions, create_openapi_tools

LONG = "listAllTheThingsThatAreOrWereOrWillBeInTheWarehouseOfTheCustomer"
SECRET = "s3cret-of-the-site"
Seen = dict[str, Any]
PETS: dict[str, Any] = {
    "openapi": "3.0.3",
    "servers": [{"url": "/v1"}],
    "components": {
        "schemas": {
            "Pet": {
                "type": "object",
                "required": ["name", "id", "tenant"],
                "properties": {
                    "id": {"type": "integer", "readOnly": True},
                    "tenant": {"type": "string"},
                    "name": {"type": "string", "nullable": True, "example": "Rex"},
                    "weight": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
                    "parents": {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}},
                    "home": {"oneOf": [{"type": "string"}, {"type": "integer"}], "nullable": True},
                },
            }
        },
        "parameters": {
            "Limit": {"name": "limit", "in": "query", "schema": {"type": "integer", "maximum": 50}},
            "Tenant": {"name": "X-Tenant", "in": "header", "required": True, "schema": {"type": "string"}},
        },
        "requestBodies": {
            "Pet": {"required": True, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}
        },
    },
    "paths": {
        "/pets": {
            "parameters": [{"$ref": "#/components/parameters/Tenant"}],
            "get": {
                "summary": "List pets",
                "parameters": [
                    {"$ref": "#/components/parameters/Limit"},
                    {"name": "tags", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                    {"name": "ids", "in": "query", "explode": False, "schema": {"type": "array"}},
                    {"name": "near", "in": "query", "style": "deepObject", "schema": {"type": "object"}},
                    {"name": "free", "in": "query", "schema": {"type": "object"}},
                ],
            },
            "post": {"operationId": "createPet", "requestBody": {"$ref": "#/components/requestBodies/Pet"}},
        },
        "/pets/{id}": {"get": {"parameters": [{"name": "id", "in": "path", "required": True, "schema": {}}]}},
        "/page": {"get": {"operationId": "page"}},
        "/huge": {"get": {"operationId": "huge"}},
        "/wrong": {"delete": {"operationId": "wrong"}},
        "/away": {"post": {"operationId": "away"}},
        "/form": {
            "post": {
                "operationId": "form",
                "requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": {"type": "object"}}}},
            }
        },
        "/a": {"get": {"operationId": LONG + "A"}, "post": {"operationId": LONG + "B"}},
        "/b": {"get": {"operationId": "same"}, "post": {"operationId": "same"}},
    },
}


async def _handle(request: web.BaseRequest) -> web.StreamResponse:
    path = request.path
    if path == "/v1/page":
        return web.Response(text="<html><body><h1>Hi</h1><script>x</script></body></html>", content_type="text/html")
    if path == "/v1/huge":
        return web.Response(body=b"x" * 10_000_000, content_type="text/plain")
    if path == "/v1/wrong":
        return web.json_response({"error": {"message": f"No right with {SECRET}."}}, status=403)
    if path == "/v1/away":
        return web.Response(status=307, headers={"Location": "http://127.0.0.1:9/"})
    if path == "/v1/openapi.json":
        return web.json_response(PETS)
    body = (await request.read()).decode()
    return web.json_response(
        {
            "method": request.method,
            "raw": request.raw_path if hasattr(request, "raw_path") else str(request.rel_url),
            "query": [list(pair) for pair in request.query.items()],
            "tenant": request.headers.get("X-Tenant"),
            "type": request.headers.get("Content-Type"),
            "body": body,
            "key": request.headers.get("Authorization"),
        }
    )


@pytest.fixture
async def pet_api() -> AsyncIterator[str]:
    """The address of the server that says what it was asked."""
    runner = web.ServerRunner(web.Server(_handle), shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


def made(address: str, *allow: str, **more: Any) -> dict[str, Tool]:
    options = OpenApiOptions(
        document_url=f"{address}/v1/openapi.json",
        allow_private=("127.0.0.0/8",),
        headers={"Authorization": lambda _context: f"Bearer {SECRET}"},
        limits=FetchLimits(max_bytes=100_000),
    )
    document = more.pop("document", PETS)
    return {tool.name: tool for tool in create_openapi_tools(document, allow=allow, options=options, **more)}


async def asked(tool: Tool, **arguments: Any) -> Seen:
    found = await call(tool, **arguments)
    assert isinstance(found, dict)
    return found


async def test_query_headers_and_a_parameter_by_reference(pet_api: str) -> None:
    tools = made(pet_api, "GET /pets", supplied={"x-tenant": "acme"})
    tool = tools["get_pets"]
    assert set(tool.input_schema["properties"]) == {"limit", "tags", "ids", "near", "free"}
    seen = await asked(
        tool, limit=5, tags=["a b", "c&d"], ids=[1, 2], near={"lat": 1.5, "on": True}, free={"colour": "red"}
    )
    assert seen["tenant"] == "acme"
    assert [tuple(pair) for pair in seen["query"]] == [
        ("limit", "5"),
        ("tags", "a b"),
        ("tags", "c&d"),
        ("ids", "1,2"),
        ("near[lat]", "1.5"),
        ("near[on]", "true"),
        ("colour", "red"),
    ]
    assert seen["key"] == "Bearer …"  # sent, and hidden from the model where the server repeats it
    assert (tool.read_only, tool.open_world, tool.origin, tool.needs_approval) == (True, True, Origin.WEB, False)
    with pytest.raises(ToolInputInvalid, match="limit"):
        await call(tool, limit=51)


async def test_bodies_by_reference_lose_what_the_application_sets_and_what_only_answers_have(pet_api: str) -> None:
    tool = made(pet_api, "createPet", supplied={"X-Tenant": "acme", "body.tenant": lambda _context: "acme"})[
        "createPet"
    ]
    shown = tool.input_schema["properties"]["body"]
    assert set(shown["properties"]) == {"name", "weight", "parents", "home"}
    assert (shown["required"], shown["properties"]["weight"]) == (["name"], {"type": "number", "exclusiveMinimum": 0})
    seen = await asked(tool, body={"name": None, "home": None, "parents": [], "tenant": "evil"})
    assert json.loads(seen["body"]) == {"name": None, "home": None, "parents": [], "tenant": "acme"}
    assert seen["type"] == "application/json"
    assert (tool.read_only, tool.reruns, tool.needs_approval) == (False, False, True)


def test_a_recursive_schema_is_finite_and_checks_what_is_nested(pet_api: str) -> None:
    tool = made(pet_api, "createPet", supplied={"X-Tenant": "acme"})["createPet"]
    assert list(tool.input_schema["$defs"]) == ["Pet"]
    pet = {"name": "a", "tenant": "t", "parents": [{"name": "b", "tenant": "t", "weight": 0}]}
    assert "parents.0.weight" in problems({"body": pet}, tool.input_schema)[0]


@pytest.mark.parametrize("value", ["..", ".", "", "a/b", "../x", "%2e%2e", "..%2fx", "%252e%252e%252fx", "a\\b", "a\n"])
async def test_paths_cannot_climb(pet_api: str, value: str) -> None:
    tool = made(pet_api, "GET /pets/{id}")["get_pets_id"]
    with pytest.raises(ToolInputInvalid, match="no part of a path"):
        await call(tool, id=value)


@pytest.mark.parametrize(("value", "raw"), [("a b?c#d", "a%20b%3Fc%23d"), ("...", "..."), ("ä", "%C3%A4"), (7, "7")])
async def test_other_values_are_one_segment(pet_api: str, value: Any, raw: str) -> None:
    seen = await asked(made(pet_api, "GET /pets/{id}")["get_pets_id"], id=value)
    assert seen["raw"] == f"/v1/pets/{raw}"


@settings(max_examples=examples(500))
@given(value=st.text() | st.text(alphabet="./\\%2eEfF5c "))
def test_every_value_is_one_segment_or_refused(value: str) -> None:
    parameter = Parameter(name="id", where="path", schema={}, style="simple", explode=False)
    try:
        segment = path_segment(parameter, value)
    except (ToolInputInvalid, UnicodeEncodeError):
        return
    assert re.fullmatch(r"[A-Za-z0-9_.~%-]+", segment)
    assert segment not in {".", ".."}


async def test_names_of_the_application_cannot_come_from_an_object_of_the_model(pet_api: str) -> None:
    options = OpenApiOptions(document_url=f"{pet_api}/v1/x", allow_private=("127.0.0.0/8",), query={"api_key": SECRET})
    (tool,) = create_openapi_tools(PETS, allow=["GET /pets"], supplied={"X-Tenant": "acme"}, options=options)
    with pytest.raises(ToolInputInvalid, match="api_key"):
        await call(tool, free={"api_key": "mine"})
    assert ["api_key", "…"] in (await asked(tool))["query"]


async def test_answers_that_are_pages_too_large_or_errors(pet_api: str) -> None:
    tools = made(pet_api, "page", "huge", "wrong", "away")
    assert await call(tools["page"]) == "# Hi"
    with pytest.raises(ToolError, match="more than 100000 bytes"):
        await call(tools["huge"])
    with pytest.raises(ToolError, match=r"status 403 \(Forbidden\): No right with …\."):
        await call(tools["wrong"])
    with pytest.raises(ToolError, match="status 307"):  # what changes something follows no redirect
        await call(tools["away"])


async def test_forms(pet_api: str) -> None:
    seen = await asked(made(pet_api, "form")["form"], body={"a": ["1", "2"], "b": "x&y", "c": True})
    assert (seen["body"], seen["type"]) == ("a=1&a=2&b=x%26y&c=true", "application/x-www-form-urlencoded")


async def test_swagger_2(pet_api: str) -> None:
    document = {
        "swagger": "2.0",
        "host": pet_api.removeprefix("http://"),
        "basePath": "/v1",
        "schemes": ["http"],
        "definitions": {"Pet": {"type": "object", "properties": {"name": {"type": "string"}}}},
        "parameters": {"P": {"in": "body", "name": "pet", "required": True, "schema": {"$ref": "#/definitions/Pet"}}},
        "paths": {
            "/pets": {
                "post": {
                    "parameters": [
                        {"$ref": "#/parameters/P"},
                        {"in": "query", "name": "t", "type": "array", "items": {"type": "string"}},
                        {"in": "query", "name": "m", "type": "array", "collectionFormat": "multi"},
                    ]
                }
            },
            "/fields": {"post": {"parameters": [{"in": "formData", "name": "a", "type": "string", "required": True}]}},
            "/upload": {"post": {"parameters": [{"in": "formData", "name": "f", "type": "file"}]}},
        },
    }
    tools = made(pet_api, "POST /pets", "POST /fields", document=document)
    seen = await asked(tools["post_pets"], body={"name": "Rex"}, t=["a", "b"], m=["c", "d"])
    assert seen["query"] == [["t", "a,b"], ["m", "c"], ["m", "d"]]
    assert json.loads(seen["body"]) == {"name": "Rex"}
    assert (await asked(tools["post_fields"], body={"a": "b"}))["body"] == "a=b"
    with pytest.raises(ToolDeclarationInvalid, match="a file"):
        made(pet_api, "POST /upload", document=document)


def test_names_are_short_single_and_the_same_whatever_is_allowed(pet_api: str) -> None:
    tools = made(pet_api, "*", deny=["createPet", "GET /pets"])
    assert all(NAME_PATTERN.match(name) for name in tools)
    assert len(tools) == 10
    for key in ("GET /b", f"{LONG}B"):
        (name,) = made(pet_api, key)
        assert name in tools


def test_three_of_three_hundred() -> None:
    paths = {f"/things/{n}": {"get": {"operationId": f"thing{n}"}} for n in range(300)}
    document = {"openapi": "3.2.0", "servers": [{"url": "https://api.example.com"}], "paths": paths}
    tools = create_openapi_tools(document, allow=["thing7", "thing29*"], deny=["thing29[0-8]", "thing29"])
    assert [tool.name for tool in tools] == ["thing7", "thing299"]


@pytest.mark.parametrize(
    ("change", "allow", "words"),
    [
        ({}, ["nothing"], "no operation 'nothing'"),
        ({}, [], "list of the operations"),
        ({"openapi": "4.0"}, ["page"], "version"),
        ({"openapi": "3.3.0"}, ["page"], "version"),
        ({"servers": [{"url": "https://elsewhere.example.com"}]}, ["page"], "another origin"),
        ({"paths": {"/x": {"get": {"parameters": [{"$ref": "https://a.example/p"}]}}}}, ["*"], "another document"),
        ({"paths": {"/x": {"get": {"parameters": [{"$ref": "#/nowhere"}]}}}}, ["*"], "nothing at"),
        ({"a": {"$ref": "#/a"}, "paths": {"/x": {"get": {"parameters": [{"$ref": "#/a"}]}}}}, ["*"], "circle"),
        ({"paths": {"/x": {"post": {"requestBody": {"content": {"image/png": {}}}}}}}, ["*"], "cannot be made"),
    ],
)
def test_what_cannot_be_is_said_when_it_is_declared(change: dict[str, Any], allow: list[str], words: str) -> None:
    with pytest.raises(ToolDeclarationInvalid, match=words):
        made("https://api.example.com", *allow, document={**PETS, **change})


def test_a_supplied_name_that_no_operation_has_is_a_mistake() -> None:
    with pytest.raises(ToolDeclarationInvalid, match="X-Tenent"):
        made("https://api.example.com", "page", supplied={"X-Tenent": "acme"})


def test_a_relative_or_open_server_needs_a_base() -> None:
    for servers in ([{"url": "/v1"}], [{"url": "http://api.example.com"}]):
        with pytest.raises(ToolDeclarationInvalid, match="base_url"):
            create_openapi_tools({**PETS, "servers": servers}, allow=["page"])
    assert create_openapi_tools(PETS, allow=["page"], base_url="https://api.example.com/v1/")


async def test_addresses_of_this_machine_are_refused_unless_they_are_allowed(pet_api: str) -> None:
    (tool,) = create_openapi_tools(PETS, allow=["page"], base_url=f"{pet_api}/v1")
    with pytest.raises(ToolError):
        await call(tool)


async def test_a_document_is_fetched_within_the_same_rules(pet_api: str) -> None:
    url = f"{pet_api}/v1/openapi.json"
    assert await load_openapi_document(url, allow_private=("127.0.0.0/8",)) == PETS
    with pytest.raises(ToolDeclarationInvalid, match="cannot be fetched"):
        await load_openapi_document(url)


def test_documents_as_text() -> None:
    assert read_document("\ufeff" + json.dumps(PETS)) == PETS
    found = read_document("openapi: 3.0.0\ninfo: {version: 2024-01-01}\npaths:\n  /a: {get: {operationId: a}}\n")
    assert [each.name for each in ApiDocument(found).operations()] == ["a"]
    words = read_document(
        "a: [NO, on, yes, y, off, 2024-01-01, 'true']\nb: [true, False, 1, 1.5, ~, null]\non: {y: 1}\n"
    )
    assert words["a"] == ["NO", "on", "yes", "y", "off", "2024-01-01", "true"]
    assert (words["b"], words["on"]) == ([True, False, 1, 1.5, None, None], {"y": 1})
    for text in ("a: &x [1]\nb: *x", "{", "a: [", "- &a [*a]"):
        with pytest.raises(ToolDeclarationInvalid):
            read_document(text)
