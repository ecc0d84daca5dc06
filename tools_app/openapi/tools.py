"""The operations of an OpenAPI document as tools, each an HTTP request within the rules of addresses."""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.openapi.operations import ApiDocument, Body, Operation, Parameter
from tools_app.core.openapi.requests import write_request
from tools_app.core.openapi.schemas import SchemaReader
from tools_app.core.origins import Origin
from tools_app.core.output_limits import OutputLimit
from tools_app.core.schema_check import check_schema, problems
from tools_app.core.tool import ApprovalRule, Tool, ToolContext
from tools_app.errors import SchemaInvalid, ToolDeclarationInvalid, ToolError, ToolInputInvalid
from tools_app.fetching.errors import FetchFailed
from tools_app.fetching.exchange import Exchange
from tools_app.fetching.resolving import Resolve, resolve
from tools_app.fetching.urls import parse_rules
from tools_app.fetching.values import FetchLimits, Outgoing
from tools_app.openapi.answers import read_answer
from tools_app.openapi.documents import read_document
from tools_app.openapi.networks import networks

Supplied: TypeAlias = Any | Callable[[ToolContext], Any | Awaitable[Any]]
"""A value, or a function of the call that gives it; it may be async."""

BODY: Final = "body"
READS: Final = frozenset({"GET", "HEAD"})
ACCEPT: Final = "application/json, text/markdown;q=0.9, text/plain;q=0.8, text/html;q=0.5, */*;q=0.1"
MAX_DESCRIPTION: Final = 2_000
SECRET_CHARS: Final = 8
LONG_CHARS: Final = 16
"""Shorter values are words that answers have for other reasons."""

_MARGIN_SECONDS: Final = 10.0
_ODD: Final = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenApiOptions:
    """Further choices for the tools of a document.

    `document_url`: where it was fetched; relative servers are read from there, and others have to be on its origin.
    `name_prefix`: of the tools' names. `needs_approval`: of operations that may change something. `allow_private`:
    networks (CIDR) that may be reached although they are not public. `headers`, `query`: sent with each request.
    """

    document_url: str = ""
    name_prefix: str = ""
    needs_approval: ApprovalRule = True
    allow_private: Sequence[str] = ()
    headers: Mapping[str, Supplied] = field(default_factory=dict, repr=False)
    query: Mapping[str, Supplied] = field(default_factory=dict, repr=False)
    limits: FetchLimits = field(default_factory=FetchLimits)
    resolver: Resolve = resolve


def create_openapi_tools(
    document: Mapping[str, Any] | str,
    *,
    allow: Sequence[str],
    deny: Sequence[str] = (),
    base_url: str = "",
    supplied: Mapping[str, Supplied] | None = None,
    options: OpenApiOptions | None = None,
) -> tuple[Tool, ...]:
    """Make tools of the operations of an OpenAPI 3.0, 3.1, 3.2 or Swagger 2 document.

    `document`: a value, or JSON or YAML as text; that of an address is loaded with `load_openapi_document` first.
    `allow`, `deny`: ids of operations or `GET /pets/{id}`, with `*`; `deny` wins. `base_url`: replaces the document's
    servers. `supplied`: parameters by name, and properties of the body as `body.tenant`, that the application sets;
    the model neither sees nor sets them. Errors: `ToolDeclarationInvalid`, also for entries that match nothing.
    """
    chosen = options or OpenApiOptions()
    read = ApiDocument(read_document(document))
    operations = _allowed(read.operations(chosen.name_prefix), allow, deny)
    given = dict(supplied or {})
    used: set[str] = set()
    tools = tuple(_tool(read, each, base_url, given, chosen, used) for each in operations)
    if unused := sorted(given.keys() - used):
        raise ToolDeclarationInvalid(f"No allowed operation has what is supplied: {', '.join(unused)}")
    return tools


def _allowed(operations: Sequence[Operation], allow: Sequence[str], deny: Sequence[str]) -> list[Operation]:
    if isinstance(allow, str) or isinstance(deny, str) or not allow:
        raise ToolDeclarationInvalid("Tools of a document need a list of the operations that are allowed.")
    for pattern in (*allow, *deny):
        if not any(_matches(each, pattern) for each in operations):
            raise ToolDeclarationInvalid(f"The document has no operation {pattern!r}.")
    return [
        each
        for each in operations
        if any(_matches(each, pattern) for pattern in allow) and not any(_matches(each, pattern) for pattern in deny)
    ]


def _matches(operation: Operation, pattern: str) -> bool:
    names = (operation.operation_id, operation.key)
    return any(name == pattern or fnmatchcase(name, pattern) for name in names if name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """An operation that is ready to be called. `arguments`: parameters by the names that the model has for them."""

    operation: Operation
    base: str
    schema: JSONObject
    arguments: Mapping[str, Parameter]
    fixed: Sequence[tuple[Parameter, Supplied]]
    body: Body | None
    body_name: str
    body_fixed: Mapping[str, Supplied]


def _tool(
    document: ApiDocument,
    operation: Operation,
    base_url: str,
    supplied: Mapping[str, Supplied],
    options: OpenApiOptions,
    used: set[str],
) -> Tool:
    try:
        plan = _plan(document, operation, _base(document, operation, base_url, options), supplied, options, used)
        check_schema(plan.schema)
    except (ToolDeclarationInvalid, SchemaInvalid) as error:
        raise ToolDeclarationInvalid(f"{operation.key} cannot be a tool: {error.message}") from error
    exchange = Exchange(
        parse_rules([plan.base]),
        limits=options.limits,
        private=networks(options.allow_private),
        resolver=options.resolver,
    )

    async def call(input: JSONObject, context: ToolContext) -> Any:  # noqa: A002 - the name that `Tool.parse` gives
        return await _call(plan, exchange, options, input, context)

    reads = operation.method in READS
    about = "\n\n".join(part for part in (operation.summary, operation.description) if part) or operation.key
    return Tool(
        name=operation.name,
        title=" ".join((operation.summary or operation.operation_id or operation.key).split())[:80],
        description=about[:MAX_DESCRIPTION],
        input_schema=plan.schema,
        function=call,
        context_parameter="context",
        timeout_seconds=options.limits.seconds + _MARGIN_SECONDS,
        reruns=reads,
        needs_approval=False if reads else options.needs_approval,
        output_limit=OutputLimit(max_bytes=options.limits.max_chars),
        origin=Origin.WEB,
        read_only=reads,
        open_world=True,
    )


def _base(document: ApiDocument, operation: Operation, base_url: str, options: OpenApiOptions) -> str:
    """The address that paths are added to. That of a fetched document stays on the document's origin."""
    if base_url:
        return base_url.rstrip("/")
    base = document.base_url(operation, options.document_url).rstrip("/")
    parts, own = urlsplit(base), urlsplit(options.document_url)
    if options.document_url and (parts.scheme, parts.netloc) != (own.scheme, own.netloc):
        raise ToolDeclarationInvalid(f"its server is on another origin than the document: give base_url ({base})")
    if parts.scheme != "https" and not options.document_url:
        raise ToolDeclarationInvalid(f"its server is not reached by https: give base_url ({base})")
    return base


def _plan(
    document: ApiDocument,
    operation: Operation,
    base: str,
    supplied: Mapping[str, Supplied],
    options: OpenApiOptions,
    used: set[str],
) -> _Plan:
    reader = SchemaReader(document.references)
    ours = {("header", name.lower()) for name in options.headers} | {("query", name) for name in options.query}
    arguments: dict[str, Parameter] = {}
    properties: JSONObject = {}
    required: list[str] = []
    fixed: list[tuple[Parameter, Supplied]] = []
    for parameter in document.parameters(operation):
        key = _supplied_key(parameter, supplied)
        if key is not None:
            used.add(key)
            fixed.append((parameter, supplied[key]))
            continue
        if (parameter.where, parameter.name.lower() if parameter.where == "header" else parameter.name) in ours:
            continue
        name = _free_name(parameter.name, parameter.where, properties)
        arguments[name] = parameter
        properties[name] = _described(reader.read(parameter.schema), parameter.description)
        required += [name] if parameter.is_required else []
    body, body_name = document.body(operation), ""
    body_fixed = {key.removeprefix("body."): value for key, value in supplied.items() if key.startswith("body.")}
    if body is not None:
        body_name = _free_name(BODY, "request", properties)
        schema = reader.read(body.schema)
        body_fixed = _taken_out(schema, body_fixed, reader)
        schema = _opened(schema, body_fixed, reader)
        used.update(f"body.{name}" for name in body_fixed)
        properties[body_name] = _described(schema, body.description)
        required += [body_name] if body.is_required else []
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return _Plan(
        operation=operation,
        base=base,
        schema={**schema, "$defs": reader.definitions} if reader.definitions else schema,
        arguments=arguments,
        fixed=fixed,
        body=body,
        body_name=body_name,
        body_fixed=body_fixed if body is not None else {},
    )


def _supplied_key(parameter: Parameter, supplied: Mapping[str, Supplied]) -> str | None:
    if parameter.where != "header":
        return parameter.name if parameter.name in supplied else None
    return next((key for key in supplied if key.lower() == parameter.name.lower()), None)


def _free_name(name: str, where: str, taken: Mapping[str, Any]) -> str:
    """The name of an argument for models, which take letters, digits and few signs."""
    plain = _ODD.sub("_", name)[:56].strip("_") or where
    if plain not in taken:
        return plain
    plain, number = f"{where}_{plain}"[:60], 1
    while (f"{plain}_{number}" if number > 1 else plain) in taken:
        number += 1
    return f"{plain}_{number}" if number > 1 else plain


def _described(schema: Any, description: str) -> Any:
    if not isinstance(schema, dict) or not description or schema.get("description"):
        return schema
    return {**schema, "description": description[:MAX_DESCRIPTION]}


def _object_of(schema: Any, reader: SchemaReader) -> JSONObject | None:
    """The schema of an object with properties, through one reference."""
    if isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
        schema = reader.definitions.get(schema["$ref"].rpartition("/")[2])
    return schema if isinstance(schema, dict) and isinstance(schema.get("properties"), dict) else None


def _taken_out(schema: Any, fixed: Mapping[str, Supplied], reader: SchemaReader) -> dict[str, Supplied]:
    """The properties of the body that the application sets, of those that this body has."""
    found = _object_of(schema, reader)
    return {} if found is None else {name: value for name, value in fixed.items() if name in found["properties"]}


def _opened(schema: Any, fixed: Mapping[str, Supplied], reader: SchemaReader) -> Any:
    """The schema of the body without these properties."""
    found = _object_of(schema, reader)
    if found is None or not fixed:
        return schema
    left = {name: each for name, each in found["properties"].items() if name not in fixed}
    needed = [name for name in found.get("required", ()) if name not in fixed]
    return {**found, "properties": left, "required": needed}


async def _call(
    plan: _Plan, exchange: Exchange, options: OpenApiOptions, given: JSONObject, context: ToolContext
) -> Any:
    """Send the request. Errors: `ToolInputInvalid` before anything is sent; `ToolError` in the server's words."""
    wrong = problems(given, plan.schema)
    if wrong:
        raise ToolInputInvalid(f"The input does not fit {plan.operation.name}: {'; '.join(wrong)}")
    fixed = [(parameter, await _value(each, context)) for parameter, each in plan.fixed]
    headers = {name: str(await _value(each, context)) for name, each in options.headers.items()}
    query = {name: str(await _value(each, context)) for name, each in options.query.items()}
    in_body = {name: await _value(each, context) for name, each in plan.body_fixed.items()}
    values = [*((plan.arguments[name], value) for name, value in given.items() if name in plan.arguments), *fixed]
    body = _body(plan, given, in_body)
    taken = {*query, *(parameter.name for parameter, _value in fixed if parameter.where == "query")}
    written = write_request(plan.operation.path, values, body, query=query, reserved=taken)
    reads = plan.operation.method in READS
    request = Outgoing(
        url=plan.base + written.target,
        method=plan.operation.method,
        headers=(("Accept", ACCEPT), *written.headers, *headers.items()),
        body=written.body,
        redirect="follow" if reads else "manual",
    )
    context.note_origin(Origin.WEB, f"{plan.operation.method} {plan.base}{plan.operation.path}")
    secrets = _secrets([*headers.values(), *query.values()], [*in_body.values(), *(value for _each, value in fixed)])
    try:
        answer = await exchange.send(request)
    except FetchFailed as error:
        raise ToolError(_without_query(error.message, plan)) from error
    return await read_answer(answer, secrets)


def _secrets(sent: Sequence[str], supplied: Sequence[Any]) -> list[str]:
    """Texts that are hidden where a server repeats them: words of headers and the query, and long supplied values."""
    words = [word for text in sent for word in text.split() if len(word) >= SECRET_CHARS]
    return words + [value for value in supplied if isinstance(value, str) and len(value) >= LONG_CHARS]


def _body(plan: _Plan, given: JSONObject, fixed: Mapping[str, Any]) -> tuple[Body, Any] | None:
    if plan.body is None or (plan.body_name not in given and not fixed):
        return None
    value = given.get(plan.body_name, {})
    return plan.body, {**value, **fixed} if fixed and isinstance(value, dict) else value


async def _value(supplied: Supplied, context: ToolContext) -> Any:
    value = supplied(context) if callable(supplied) else supplied
    return await value if inspect.isawaitable(value) else value


def _without_query(message: str, plan: _Plan) -> str:
    """Words about an address without its query, which may hold secrets."""
    return re.sub(re.escape(plan.base) + r"[^\s?#]*[?#]\S*", plan.base + plan.operation.path, message)
