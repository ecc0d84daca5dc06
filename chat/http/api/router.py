"""The routers of the JSON API, and `build_api` that puts them together.

A project that has its own `NinjaAPI` adds `router` to it and calls `install_problems`; ours mounts `build_api()`.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import NinjaAPI, Router
from ninja.openapi.schema import OpenAPISchema
from ninja.parser import Parser

from chat.errors import Unauthenticated
from chat.http.api.authentication import SessionAuth, TokenAuth, caller_by_token
from chat.http.api.endpoints import (
    account,
    account_tools,
    agents,
    archives,
    branches,
    bulk,
    compactions,
    context,
    events,
    executors,
    feedback,
    files,
    instances,
    members,
    memory,
    notifications,
    preferences,
    preview,
    programs,
    projects,
    prompts,
    provider_keys,
    review,
    search,
    sessions,
    settings,
    shares,
    state,
    stream,
    submissions,
    summaries,
    todos,
    tokens,
    turns,
    undo,
    usage,
    work,
)
from chat.http.api.endpoints.durable import fibers, runs, schedules
from chat.http.api.endpoints.tools import (
    executions,
    extensions,
    guard,
    mcp_contents,
    mcp_imports,
    mcp_servers,
    rules,
    skills,
    tool_calls,
    workspace,
    workspaces,
)
from chat.http.api.error_responses import add_error_responses
from chat.http.api.problems import install_problems, problem_of
from chat.http.api.reference_page import ReferencePage
from thinkproject.kernel.jsonvalue import JSONObject, is_nested_deeper, load

VERSION = "1.0.0"
MAX_DEPTH = 100
PARTS = (
    instances,
    agents,
    members,
    state,
    sessions,
    archives,
    turns,
    undo,
    review,
    todos,
    tool_calls,
    guard,
    rules,
    mcp_imports,  # before the ids of servers
    mcp_servers,
    mcp_contents,
    schedules,
    stream,
    events,
    submissions,
    fibers,
    executors,
    runs,
    files,
    workspace,
    workspaces,
    executions,
    skills,
    extensions,
    context,
    memory,
    preferences,
    preview,
    compactions,
    search,
    settings,
    summaries,
    programs,
    tokens,
    account,
    account_tools,
    provider_keys,
    work,
    usage,
    shares,
    bulk,
    notifications,
    projects,
    prompts,
    feedback,
    branches,
)
"""In the order in which their addresses are tried."""

__all__ = ["build_api", "build_router"]


class StrictParser(Parser):
    """JSON as the standard has it: no NaN, no infinities, bounded nesting."""

    def parse_body(self, request: HttpRequest) -> JSONObject:
        """Decode the body. Errors: `ValueError`, which the framework answers with 400."""
        value: JSONObject = load(request.body)
        if is_nested_deeper(value, MAX_DEPTH):
            raise ValueError(f"JSON is nested deeper than {MAX_DEPTH} levels")
        return value


def build_router() -> Router:
    """All operations below `/api/v1/`."""
    router = Router(auth=[TokenAuth(), SessionAuth()])
    for part in PARTS:
        router.add_router("", part.router)
    return router


class ThinkAPI(NinjaAPI):
    """The API of the framework, whose document names the errors too."""

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        """Build the OpenAPI document."""
        document = super().get_openapi_schema(path_prefix=path_prefix, path_params=path_params)
        add_error_responses(document)
        return document


def _for_callers(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Show the documentation to callers: by the bearer token of the request, else to signed-in browsers."""
    for_browsers = login_required(view)

    @wraps(view, assigned=())
    def guarded(request: HttpRequest, **parameters: Any) -> HttpResponseBase:
        try:
            caller = caller_by_token(request)
        except Unauthenticated as error:
            return problem_of(error)
        return view(request, **parameters) if caller else for_browsers(request, **parameters)

    return guarded


def build_api(urls_namespace: str = "think-api") -> NinjaAPI:
    """A complete API: operations, documentation, problems."""
    api = ThinkAPI(
        title="Think for Django",
        version=VERSION,
        description="Conversations with agents: instances, messages, turns and their streams, files.",
        urls_namespace=urls_namespace,
        auth=[TokenAuth(), SessionAuth()],
        parser=StrictParser(),
        docs=ReferencePage(),
        docs_decorator=_for_callers,
    )
    api.add_router("", build_router())
    install_problems(api)
    return api
