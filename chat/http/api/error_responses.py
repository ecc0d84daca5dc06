"""Error responses in the OpenAPI document: the framework derives only success responses.

Most statuses follow from the shape of an operation. What depends on the state of a conversation is declared beside the
operation, with `openapi_extra=declares(409)`.
"""

from http import HTTPStatus
from typing import Any, Final

from chat.http.api.problems import CONTENT_TYPE
from chat.http.api.schemas.common import Problem
from thinkproject.kernel.jsonvalue import JSONObject

_SAFE: Final = frozenset({"get", "head", "options"})
_RETRY_AFTER: Final[JSONObject] = {
    "description": "Seconds to wait before the request may be sent again.",
    "schema": {"type": "integer", "minimum": 0},
}
_DESCRIPTIONS: Final[dict[int, str]] = {
    400: "The request is malformed, for instance no JSON.",
    401: "There are no credentials, or they are not valid any more.",
    403: "The caller's role does not allow this, or the CSRF token of a cookie is missing.",
    404: "There is no such object, or it belongs to another user.",
    409: "The present state does not allow this.",
    413: "The request is larger than this server accepts.",
    416: "The range lies beyond the end of the file.",
    422: "A parameter or the body is not what is expected.",
    429: "A limit is reached.",
    500: "The agent's own code failed.",
    502: "Something behind this server failed.",
    503: "Something that is needed does not answer at the moment.",
}
_HEADERS: Final[dict[int, dict[str, JSONObject]]] = {
    401: {"WWW-Authenticate": {"required": True, "schema": {"type": "string"}}},
    416: {"Content-Range": {"required": True, "schema": {"type": "string"}}},
    429: {"Retry-After": {"required": True, **_RETRY_AFTER}},
    503: {"Retry-After": _RETRY_AFTER},
}


def declares(*statuses: int) -> JSONObject:
    """Return the `openapi_extra` of an operation that may answer with these errors besides the usual ones."""
    return {"responses": {status: _reference(status) for status in statuses}}


def add_error_responses(document: dict[str, Any]) -> None:
    """Declare the usual errors of every operation, and describe all that are declared."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            for status in _usual(path, method, operation):
                operation["responses"].setdefault(status, _reference(status))
    components = document["components"]
    components["schemas"]["Problem"] = Problem.model_json_schema(mode="serialization")
    components["responses"] = {_name(status): _response(status) for status in _DESCRIPTIONS}


def _usual(path: str, method: str, operation: JSONObject) -> set[int]:
    found = {400, 401}
    if method not in _SAFE:
        found.add(403)
    if "{" in path:
        found |= {403, 404}
    if operation.get("parameters"):
        found.add(422)
    if "requestBody" in operation:
        found |= {413, 422}
    return found


def _response(status: int) -> JSONObject:
    return {
        "description": _DESCRIPTIONS[status],
        "headers": _HEADERS.get(status, {}),
        "content": {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


def _reference(status: int) -> JSONObject:
    return {"$ref": f"#/components/responses/{_name(status)}"}


def _name(status: int) -> str:
    return HTTPStatus(status).phrase.replace(" ", "")
