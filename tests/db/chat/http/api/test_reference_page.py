"""The API's documentation: every operation and schema of the document, nothing from elsewhere."""

import functools
import json
import re
from typing import Any

from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.test import Client

from chat.http.api.reference_page import groups_of, schemas_of
from tests.db.chat.conftest import ApiClient
from thinkproject.api import api


@functools.cache
def document() -> dict[str, Any]:
    return api.get_openapi_schema(path_prefix="/api/v1/")


def test_every_operation_and_schema_is_there(as_alice: ApiClient) -> None:
    html = as_alice.get("/docs").content.decode()
    ids = {each["operationId"] for methods in document()["paths"].values() for each in methods.values()}
    assert set(re.findall(r'<details id="([^"]+)" class="operation"', html)) == ids
    schemas = set(document()["components"]["schemas"])
    assert set(re.findall(r'<details id="schema-([^"]+)"', html)) == schemas
    assert set(re.findall(r'href="#schema-([^"]+)"', html)) <= schemas


def test_the_page_loads_what_we_ship_and_has_no_inline_code(as_alice: ApiClient) -> None:
    response = as_alice.get("/docs")
    html = response.content.decode()
    loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="([^"]+)"', html)
    assert loaded
    for address in loaded:
        assert finders.find(address.removeprefix("/static/")), address
    assert not re.search(r"\son\w+=|\sstyle=|<style|<script(?![^>]+src=)", html)


def test_strangers_are_sent_to_sign_in(db: None) -> None:
    assert Client().get("/api/v1/docs").status_code == 302


def test_examples_are_valid_for_their_operations(as_alice: ApiClient, alice: User) -> None:
    operations = {each.id: each for group in groups_of(document(), "https://example.com") for each in group.operations}
    create = operations["create_turn"]
    assert set(json.loads(create.body)) <= set(document()["components"]["schemas"]["TurnIn"]["properties"])
    assert "curl -X POST 'https://example.com/api/v1/instances/{instance_id}/turns'" in create.curl
    assert "Authorization: Bearer" in create.curl
    assert [field.name for field in create.fields if field.is_required] == ["instance_id"]
    assert [field.place for field in create.fields] == ["path", "header"]
    assert {response.status for response in create.responses} >= {"202", "409", "422"}
    made = as_alice.send("POST", "/instances", {**json.loads(operations["create_instance"].body), "agent": "assistant"})
    assert made.status_code in {200, 201}


def test_forms_with_files_have_no_json_body() -> None:
    operations = [each for group in groups_of(document(), "") for each in group.operations if each.is_form]
    assert operations
    assert all(not each.body and "-F 'file=@<path>'" in each.curl for each in operations)


def test_a_schema_says_what_is_required() -> None:
    schemas = {schema.name: schema for schema in schemas_of(document())}
    fields = {field.name: field for field in schemas["TurnIn"].fields}
    assert fields["trigger"].default == '"submit-message"'
    assert not fields["message"].is_required
    assert "".join(piece.text for piece in fields["message"].type) == "MessageIn | null"
