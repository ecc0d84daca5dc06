"""A tool as a developer writes it: a typed function, sync or async, with a docstring.

    @tool
    def add(a: float, b: Annotated[float, Field(description="The second number.")]) -> float:
        '''Add two numbers.'''
        return a + b

Descriptions of parameters may also stand in the docstring's `Args` section. A parameter annotated `ToolContext` is
filled in by the product and hidden from the model.
"""

import inspect
import re
import typing
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MethodType
from typing import Any, Protocol, TypeAlias, TypedDict, overload

from pydantic import BaseModel
from typing_extensions import Unpack

from fibers.waits import Wait, WaitEnd
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.action_rules import ActionRules
from tools_app.core.guard.rules import SeenText
from tools_app.core.inner_calls import CallDecision
from tools_app.core.origins import NoteOrigin, Origin
from tools_app.core.output_limits import OutputLimit
from tools_app.core.permissions.file_rules import FileRules
from tools_app.core.permissions.rules import CallFacts, RuleSet, RuleVerdict
from tools_app.core.permissions.subjects import Subject
from tools_app.core.questions import Editable, check_editable, check_template, check_title
from tools_app.core.schema import arguments_model, json_schema, parse_arguments
from tools_app.core.source import Source
from tools_app.core.tool_calls import ToolCall, ToolProgress, ToolResult
from tools_app.core.tool_output import Media
from tools_app.errors import ToolDeclarationInvalid, ToolError

NAME_PATTERN = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
DEFAULT_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """A tool's information about its call.

    `idempotency_key` is the same when the call runs again after a crash: hand it to whatever must happen once.
    `shared` is what the agent's hooks hand to tools.
    """

    call_id: str
    tool_name: str
    user_id: int | None
    agent: str
    instance_name: str
    turn_id: str
    attempt: int
    idempotency_key: str
    shared: Any = None
    waiter: "Waiter | None" = None
    reporter: "Reporter | None" = None
    attach: "Attach | None" = None
    act: "Act | None" = None  # runs the function of an action
    asker: "Ask | None" = None  # has a person decide about a call that this one makes
    inner: "InnerCalls | None" = None  # the turn's part in the calls that this one makes
    noter: NoteOrigin | None = None
    guard: "CallGuard | None" = None  # of the conversation
    permissions: "CallPermissions | None" = None  # the rules of the conversation
    is_approved: bool = False  # a person, or a rule about this very secret, has let the call run
    repeats_outages: bool = False  # the attempt ends with `DatabaseAway` and is made again; otherwise it is an error

    async def check_egress(self, target: str) -> None:
        """Refuse to send anything to an address while the conversation is guarded, unless a person approved this call.

        For tools whose code reaches the network by another way than calls of tools. `target`: for the model, a host or
        an address. Errors: `EgressClosed`. Outside of a turn nothing is refused.
        """
        if self.guard is not None:
            await self.guard.check_egress(target)

    def note_origin(self, origin: Origin, source: str = "") -> None:
        """Say that text of another origin is in what this call returns, besides the tool's own (`Tool.origin`).

        `source`: for people, at most 200 characters: an address, a path, a server's name. From any thread, any number
        of times; also for a call that fails. Ignored outside of a turn.
        """
        if self.noter is not None:
            self.noter(origin, source[:200])

    def progress(self, *, title: str | None = None, metadata: JSONObject | None = None) -> None:
        """Show people how far the call is: on its card, while it runs. From any thread, at any rate.

        `None` keeps what was reported before. The last report stays with the result unless that has its own. A report
        after the end of the call is ignored. Errors: `TypeError`, `ValueError` for metadata that JSON cannot carry.
        """
        if self.reporter is not None:
            self.reporter(title, metadata)

    def attach_reply(self, part: "Media | Mapping[str, Any]") -> None:
        """Add a part to the assistant's reply, after its text: what people get without passing through the model.

        Shape: `Media`, or a part of a UI message: `file` with a `data:` URL or the URL of an attachment, `source-url`,
        or `data-…`. At most 32 in a turn. From any thread. Durability: delivered once if the call succeeds, and again
        with each replay of an action's result. Errors: `ToolError` for another shape, too many parts, and outside of a
        turn.
        """
        if self.attach is None:
            raise ToolError("Parts are attached to a reply within a turn only.")
        self.attach(part)

    async def wait(
        self, kind: str, *, label: str = "", key: str = "", seconds: float = 0.0, request: JSONObject | None = None
    ) -> WaitEnd:
        """Park the turn until there is an answer, and return it. For async tools.

        `kind` and `label` describe the wait for people, `key` distinguishes several waits of one call, `seconds` is how
        long (0: for ever). `request` is stored with the wait, for code that answers it. Meanwhile the turn holds no
        worker. Durability: the tool runs again from its beginning once the answer is there, and finds it here; what it
        does before it waits happens again, under the same `idempotency_key`. Errors: `ToolError` where nothing can
        wait.
        """
        if self.waiter is None:
            raise ToolError("This tool waits for an answer, which is possible within a turn only.")
        return await self.waiter(Wait(key=key or kind, kind=kind, label=label, seconds=seconds, request=request))


class CallGuard(Protocol):
    """The injection guard as one call of a turn knows it."""

    @property
    def session_id(self) -> str:
        """The conversation."""

    async def must_ask(self, tool: "Tool") -> bool:
        """Whether a person must decide about a call of this tool. No query in a conversation without text of others."""

    def may_ask(self, tool: "Tool") -> bool:
        """Whether `must_ask` may be true, as far as is known without a query."""

    async def check_egress(self, target: str) -> None:
        """Errors: `EgressClosed` where nothing may be sent."""

    def note(self, origin: Origin, source: str) -> None:
        """Text of others is in what the call returns."""

    def texts(self) -> list[SeenText]:
        """The texts of others that the call may pass on."""

    def approved(self) -> "CallGuard":
        """The same for a call that a person has approved."""


class CallPermissions(Protocol):
    """The rules about calls as a turn knows them."""

    def may_decide(self, tool: "Tool") -> bool:
        """Whether a rule may concern a call of this tool, as far as is known without a query."""

    async def judge(self, call: CallFacts) -> RuleVerdict | None:
        """The decision of the rules about a call. A query where the conversation has stored rules."""

    async def rules(self) -> RuleSet:
        """The rules as they are stored now. A query, or two."""

    async def for_files(self, *, is_approved: bool) -> FileRules:
        """The rules as they are now, for files that code reaches. Queries: as `judge`."""


Attach: TypeAlias = Callable[[Any], None]
"""Takes a part of the reply."""

Act: TypeAlias = Callable[[ActionRules, dict[str, Any], ToolContext], Awaitable[Any]]
"""Runs an action once, with these arguments."""

Waiter: TypeAlias = Callable[[Wait], Awaitable[WaitEnd]]
"""Waits for an answer. The wait's key is one within the call, which the waiter makes one within the turn."""

Reporter: TypeAlias = Callable[[str | None, JSONObject | None], None]
"""Takes a title and metadata of a running call."""

Subjects: TypeAlias = Sequence[Subject | str]
PatternFunction: TypeAlias = Callable[[JSONObject, ToolContext], Subjects | Awaitable[Subjects]]
"""Says of one call what it is about: the texts that patterns of rules are held against. May be async."""

RuleFunction: TypeAlias = Callable[[JSONObject, ToolContext], bool | Awaitable[bool]]
"""Says of one call whether a person must approve it. May be async."""


@dataclass(frozen=True, slots=True)
class AnyRule:
    """A person must approve a call as soon as one of these functions is true of it."""

    rules: tuple[RuleFunction, ...]


ApprovalRule: TypeAlias = bool | RuleFunction | AnyRule
"""Whether a person must approve a call: always, never, or what functions of its input say."""

CheckFunction: TypeAlias = Callable[[JSONObject, ToolContext], object]
"""Raises what the call would raise, as far as that can be known before it runs. May be async."""

TextFunction: TypeAlias = Callable[[JSONObject], str | Awaitable[str]]
"""Makes the sentence that asks a person, of the arguments of a call. May be async."""

ApprovalText: TypeAlias = str | TextFunction
"""The sentence that asks a person: with names of arguments in braces, or made by a function of the input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """An ability: a name and a schema for the model, a function for us. Made by `@tool`; values are immutable.

    One without a function is a client's: its calls end the turn, and any client of the conversation may answer them.
    """

    name: str
    description: str
    input_schema: JSONObject
    function: Callable[..., Any] | None
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    reruns: bool = True  # False: a call that a crash cut is reported as interrupted instead of run again
    arguments: type[BaseModel] | None = field(default=None, repr=False)
    context_parameter: str | None = None
    needs_approval: ApprovalRule = False
    title: str = ""  # for people; models see the name
    approval_text: ApprovalText = ""  # empty: people are asked in the page's own words
    check: CheckFunction | None = None  # raises for a call that would fail, before a person is asked about it
    editable: Editable = False  # arguments that a person may change when approving
    output_limit: OutputLimit | None = None  # what a model is sent of an output; `None` asks settings
    action: ActionRules | None = None  # of a tool made by `@action`
    origin: Origin = Origin.TOOL  # of the text that it returns
    read_only: bool = False  # it changes nothing anywhere
    open_world: bool = False  # its arguments leave this installation: an address, a query, a message
    source: Source = Source.AGENT  # of the turn's tools (`tools_app.core.tool_sources`)
    permission: str = ""  # the key of rules about its calls; empty: its name
    patterns: PatternFunction | None = None  # what a call is about; `None`: the pattern `*` alone covers it
    runs_code: bool = False  # of others: each file that it reaches is judged by the rules, too
    asks_person: bool = False  # its calls are questions to a person: no rule answers them
    takes_self: bool = False  # made in the body of a class, and not bound to an object of it yet

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> "Tool":
        """Bind a method to its object, as Python does with any; other tools are what they are."""
        if instance is None or not self.takes_self:
            return self
        assert self.function is not None, "tools of clients have no self"
        return replace(self, function=MethodType(self.function, instance), takes_self=False)

    @property
    def is_client(self) -> bool:
        """Whether a client returns the result."""
        return self.function is None

    def parse(self, value: JSONObject) -> dict[str, Any]:
        """Turn the model's JSON object into keyword arguments. Errors: `ToolInputInvalid`."""
        if self.arguments is None:
            return {"input": value}
        return parse_arguments(self.arguments, value, tool_name=self.name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function as if it were not a tool. Errors: `TypeError` for a client's tool, which has none."""
        if self.function is None:
            raise TypeError(f"Tool {self.name!r} is run by a client; the server has no function for it.")
        plain = self.function if self.action is None else self.action.function
        return plain(*args, **kwargs)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCall:
    """A call within another one that a person has to approve. `context`: of the outer call."""

    tool: Tool
    call: ToolCall
    ordinal: int
    context: ToolContext


Ask: TypeAlias = Callable[[AskedCall], Awaitable[CallDecision]]
"""Gives the decision about a call, or parks the turn until there is one (`ToolContext.wait`)."""


class InnerCalls(Protocol):
    """A turn's part in the calls that one of its calls makes: the `inner` of a `ToolContext`."""

    async def review(self, tool: Tool, call: ToolCall) -> JSONObject | None:
        """Ask the agent's reviewing model about a call that its tool alone asks about: the rule that lets it run."""

    def run(
        self, tool: Tool, call: ToolCall, context: ToolContext, *, is_approved: bool
    ) -> AsyncIterator[ToolProgress | ToolResult]:
        """Run a call as those of a model are run, hooks included. Ends with one result."""

    async def keep(self, call: ToolCall, result: ToolResult) -> JSONObject:
        """Store the files of a result. Gives what has to be recorded of it besides its output; empty for nothing."""

    def deliver(self, call_id: str, kept: JSONObject) -> None:
        """Give what `keep` gave to the outer call's result. Safe to call again with the same call."""


def checked_name(name: str) -> str:
    """The name of a tool. Errors: `ToolDeclarationInvalid` for one that providers refuse."""
    if not NAME_PATTERN.match(name):
        raise ToolDeclarationInvalid(f"{name!r} is not a tool name: expected 1 to 64 letters, digits, '_' or '-'")
    return name


def with_name(item: Tool, name: str) -> Tool:
    """The same tool under another name. Errors: `ToolDeclarationInvalid` for a name that providers refuse."""
    if item.name == name:
        return item
    return replace(item, name=checked_name(name))


def client_tool(
    name: str,
    description: str = "",
    parameters: JSONObject | None = None,
    *,
    title: str = "",
    read_only: bool = False,
    origin: Origin = Origin.TOOL,
) -> Tool:
    """Make a tool that clients run. `parameters` is the JSON Schema of its input; any object when left out.

    `title` is its name for people; `read_only` and `origin`: as of `tool`.
    Errors: `ToolDeclarationInvalid` for a name that providers refuse.
    """
    checked_name(name)
    check_title(name, title)
    schema = parameters or {"type": "object", "properties": {}}
    return Tool(
        name=name,
        description=description,
        input_schema=schema,
        function=None,
        title=title,
        read_only=read_only,
        origin=origin,
    )


class ToolOptions(TypedDict, total=False):
    """The options of `@tool`, given by keyword."""

    name: str | None
    description: str | None
    timeout_seconds: float
    reruns: bool
    needs_approval: ApprovalRule
    title: str
    approval_text: ApprovalText
    check: CheckFunction | None
    editable: Editable
    output_limit: OutputLimit
    origin: Origin
    read_only: bool
    open_world: bool
    permission: str
    patterns: PatternFunction | None


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None, /, **options: Unpack[ToolOptions]
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a typed function a tool.

    `name`, `description`: for the model, in place of the function's name and docstring. `title`: for people.
    Units: `timeout_seconds`; sync functions go on in their thread after a timeout, but the model gets an error and
    moves on.
    A method of a class may be one: `self.name` is bound to the object, for `get_tools()`.
    Durability: with `reruns=True` a call that a crash cut runs again with the same `ToolContext.idempotency_key`.
    `needs_approval`: a person decides before the call runs; a function gets the input and the context, and one that
    fails counts as yes.
    `approval_text`: the sentence that asks that person, as `"Refund {amount:.2f} for order {order_number}?"`, or a
    function of the input that returns it; one that fails leaves the words to the page.
    `check`: a function of the input and the context that raises for a call that would fail. It runs before that person
    is asked, also where the injection guard asks, and changes nothing; the model reads the text of its exception, and
    no person is asked.
    `editable`: whether that person may change the arguments, all of them or those of these names.
    `output_limit`: what a model is sent of a long output; the whole stays readable.
    `origin`: of the text that it returns; `Origin.WEB` for one that returns pages or mail. `read_only`: it changes
    nothing. `open_world`: what it is called with leaves this installation. Once a conversation holds text of strangers,
    calls run without a person's decision only if they are `read_only` and not `open_world`.
    `permission`, `patterns`: the key that rules name (the tool's name by default), and a function of the input and the
    context that returns the texts which patterns of rules are held against; one that fails has people asked.
    Errors: `ToolDeclarationInvalid` at import, naming the parameter.
    """

    def make(target: Callable[..., Any]) -> Tool:
        return _make(target, options)

    return make(function) if function is not None else make


def _make(function: Callable[..., Any], options: ToolOptions) -> Tool:
    tool_name = checked_name(options.get("name") or str(getattr(function, "__name__", "")))
    timeout_seconds = options.get("timeout_seconds", DEFAULT_TIMEOUT_SECONDS)
    if timeout_seconds <= 0:
        raise ToolDeclarationInvalid(f"Tool {tool_name!r}: timeout_seconds must be positive, not {timeout_seconds!r}")
    context_parameter = _context_parameter(function)
    skip = frozenset({context_parameter} if context_parameter else ()) | _bound_self(function)
    arguments, doc = arguments_model(function, skip=skip, name=tool_name)
    made = Tool(
        name=tool_name,
        description=options.get("description") or doc,
        input_schema=json_schema(arguments),
        function=function,
        timeout_seconds=timeout_seconds,
        reruns=options.get("reruns", True),
        arguments=arguments,
        context_parameter=context_parameter,
        output_limit=options.get("output_limit"),
        origin=options.get("origin", Origin.TOOL),
        read_only=options.get("read_only", False),
        open_world=options.get("open_world", False),
        permission=options.get("permission", ""),
        patterns=options.get("patterns"),
        takes_self=bool(_bound_self(function)),
    )
    return _with_question(made, options)


def _with_question(made: Tool, options: ToolOptions) -> Tool:
    """The tool with what is for people. Errors: `ToolDeclarationInvalid`."""
    text, editable, title = options.get("approval_text", ""), options.get("editable", False), options.get("title", "")
    editable = editable if isinstance(editable, bool) else tuple(editable)
    check_title(made.name, title)
    if isinstance(text, str):
        check_template(made.name, text, made.input_schema)
    check_editable(made.name, editable, made.input_schema)
    return replace(
        made,
        needs_approval=options.get("needs_approval", False),
        title=title,
        approval_text=text,
        check=options.get("check"),
        editable=editable,
    )


def _context_parameter(function: Callable[..., Any]) -> str | None:
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError):
        return None  # arguments_model reports it with the tool's name
    return next((name for name, hint in hints.items() if hint is ToolContext and name != "return"), None)


def _bound_self(function: Callable[..., Any]) -> frozenset[str]:
    """A function in a class body has `self` first and is not bound yet; a bound method hides it already."""
    first = next(iter(inspect.signature(function).parameters), None)
    return frozenset({"self"}) if first == "self" else frozenset()
