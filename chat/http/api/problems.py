"""Every error of the API as `application/problem+json` (RFC 9457): type, title, status, detail, code, data.

`docs/reference/errors.md` lists the codes; a problem's `type` is a name with the code in it.
"""

import math
from collections.abc import Sequence
from http import HTTPStatus

from django.core.exceptions import BadRequest, RequestDataTooBig, SuspiciousOperation, TooManyFieldsSent
from django.http import Http404, HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from chat.errors import LIMIT_SECONDS
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump, load
from thinkproject.kernel.languages import translate
from thinkproject.kernel.phrases import Phrase

CONTENT_TYPE = "application/problem+json"
_CODES = {400: "bad_request", 401: "unauthenticated", 403: "denied", 404: "not_found", 413: "too_large", 429: "quota"}


def problem(status: int, code: str, detail: str | Phrase, data: JSONObject | None = None) -> HttpResponse:
    """Build a problem response, its detail in the language of the request. A 401 names the bearer scheme.

    Every 429 has `retry_after_seconds` in its data; where that is, `Retry-After` is the same.
    """
    data = dict(data or {})
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        data.setdefault("retry_after_seconds", LIMIT_SECONDS)
    body = {
        "type": f"urn:think:error:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": translate(detail),
        "code": code,
        "data": data,
    }
    response = HttpResponse(dump(body), status=status, content_type=CONTENT_TYPE)
    if status == HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = 'Bearer realm="think"'
    wait = data.get("retry_after_seconds")
    if wait is not None:
        response["Retry-After"] = str(math.ceil(wait))  # the header takes whole seconds
    return response


def problem_of(error: ThinkError) -> HttpResponse:
    """Problem of an error that the product foresaw."""
    return problem(error.response_status, error.code, error.phrase, dict(error.data))


def install_problems(api: NinjaAPI) -> None:
    """Answer every error of this API as a problem. Unexpected exceptions go to Django, as a 500 without details."""
    api.add_exception_handler(ThinkError, _think_error)
    api.add_exception_handler(ValidationError, _validation_error)
    api.add_exception_handler(HttpError, _http_error)
    api.add_exception_handler(Http404, _not_found)
    for refused in (BadRequest, SuspiciousOperation, MultiPartParserError, TooManyFieldsSent):
        api.add_exception_handler(refused, _bad_request)
    api.add_exception_handler(RequestDataTooBig, _too_big)


def unknown_operation(_request: HttpRequest) -> HttpResponse:
    """Answer unknown paths below `/api/` with a problem document instead of a page."""
    return problem(404, "not_found", "There is no such operation.")


def _think_error(_request: HttpRequest, error: ThinkError | type[ThinkError]) -> HttpResponse:
    return problem_of(error if isinstance(error, ThinkError) else error())


def _validation_error(request: HttpRequest, error: ValidationError | type[ValidationError]) -> HttpResponse:
    found = error.errors if isinstance(error, ValidationError) else []
    errors: JSONValue = [
        {
            "where": _where(item.get("loc", ()), request, is_missing=item.get("type") == "missing"),
            "message": str(item.get("msg", "")),
        }
        for item in found
    ]
    return problem(422, "invalid", "The request is not what was expected.", {"errors": errors})


def _where(found: Sequence[object], request: HttpRequest, *, is_missing: bool) -> list[str]:
    """The place of an error in what was sent, without our own names: of a parameter, or of one of several forms."""
    steps = [str(step) for step in found]
    if not steps or steps[0] != "body":
        return steps
    try:
        here: JSONValue = load(request.body)
    except ValueError:
        here = None
    place = steps[:1]
    for number, step in enumerate(steps[1:], 2):
        if isinstance(here, dict) and step in here:
            here = here[step]
        elif isinstance(here, list) and step.isdecimal() and int(step) < len(here):
            here = here[int(step)]
        elif not is_missing or number < len(steps) or number == 2:
            continue  # nothing of this name was sent
        place.append(step)
    return place


def _http_error(_request: HttpRequest, error: HttpError | type[HttpError]) -> HttpResponse:
    if not isinstance(error, HttpError):
        return problem(500, "error", "Something went wrong.")
    code = _CODES.get(error.status_code, "error")
    detail = "You are not signed in." if error.status_code == HTTPStatus.UNAUTHORIZED else error.message
    return problem(error.status_code, code, detail)


def _not_found(_request: HttpRequest, _error: Http404 | type[Http404]) -> HttpResponse:
    return problem(404, "not_found", "There is no such thing.")


def _bad_request(_request: HttpRequest, _error: Exception | type[Exception]) -> HttpResponse:
    return problem(400, "bad_request", "The request is malformed.")


def _too_big(_request: HttpRequest, _error: Exception | type[Exception]) -> HttpResponse:
    return problem(413, "too_large", "The request is larger than this server accepts.")
