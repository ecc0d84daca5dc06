"""Actions as a developer writes them: tools whose effect happens once.

    @action(key="order_id", permissions=("shop.refund_order",), approval=True, summary="Refund {amount:.2f} EUR?")
    def refund(order_id: str, amount: float, context: ToolContext) -> str:
        '''Refund an order.'''
        return shop.refund(order_id, amount, idempotency_key=context.idempotency_key)

An action is a `Tool` like any other. Its function is reached through the ledger only, by any runner of tools.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, TypedDict, overload

from typing_extensions import Unpack

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.actions.compensation import name_of
from tools_app.core.action_rules import (
    DEFAULT_ACTION_SECONDS,
    MAX_PAUSE_SECONDS,
    ActionRules,
    KeyRule,
    Risk,
)
from tools_app.core.questions import Editable
from tools_app.core.tool import ApprovalRule, ApprovalText, CheckFunction, Tool, ToolContext, tool
from tools_app.errors import ToolDeclarationInvalid, ToolError

RISKS: Final = ("low", "medium", "high")
LEDGER_SECONDS: Final = 15.0
"""Time for the ledger besides that of the function."""

_CONTEXT: Final = "_context"  # no argument can be called so


class ActionOptions(TypedDict, total=False):
    """The options of `@action`, given by keyword."""

    name: str | None
    description: str | None
    key: KeyRule | None
    permissions: Iterable[str]
    approval: ApprovalRule
    summary: ApprovalText
    risk: Risk | None
    timeout_seconds: float
    undo: str | Callable[..., Any]
    pause: bool | float
    title: str
    check: CheckFunction | None
    editable: Editable


@overload
def action(function: Callable[..., Any], /) -> Tool: ...
@overload
def action(**options: Unpack[ActionOptions]) -> Callable[[Callable[..., Any]], Tool]: ...
def action(
    function: Callable[..., Any] | None = None, /, **options: Unpack[ActionOptions]
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a typed function, sync or async, an action.

    `name`, `description`, `title`, `check`, `editable`: as `@tool`. `key`: what makes two calls the same effect: an
    argument, several, or a function of the input; without it each call is one of its own. `permissions`: what the user
    must be granted, as `"shop.refund_order"`. `approval`: whether a person decides first; `summary` is the sentence
    that asks and `risk` ("low", "medium", "high") is shown beside it. `pause`: that person may take up to 30 days
    (true), or this many seconds; a person is always asked then, unless `approval` says when. `undo`: a function made by
    `@compensation`, or its name; it is stored with the effect for later.
    Units: `timeout_seconds` (30). After a timeout it is not known whether the effect happened, and the model reads
    that.
    Durability: docs/howto/take-actions.md. Errors: `ToolDeclarationInvalid` at import.
    """

    def make(target: Callable[..., Any]) -> Tool:
        return _make(target, options)

    return make(function) if function is not None else make


def _make(function: Callable[..., Any], options: ActionOptions) -> Tool:
    seconds = options.get("timeout_seconds", DEFAULT_ACTION_SECONDS)
    pause = _pause_seconds(options.get("pause", False), options.get("name") or function.__name__)
    made: Tool = tool(
        name=options.get("name"),
        description=options.get("description"),
        needs_approval=options.get("approval", pause is not None),
        approval_text=options.get("summary", ""),
        title=options.get("title", ""),
        check=options.get("check"),
        editable=options.get("editable", False),
        timeout_seconds=seconds,
    )(function)
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise ToolDeclarationInvalid(f"Action {made.name!r}: an action returns one result and yields none")
    if made.takes_self:
        raise ToolDeclarationInvalid(
            f"Action {made.name!r} is a method, and effects are kept and undone without its object: define it as a "
            "function, outside of the class"
        )
    rules = ActionRules(
        name=made.name,
        function=function,
        context_parameter=made.context_parameter,
        key=_checked_key_rule(made, options.get("key")),
        permissions=_checked_permissions(made.name, options.get("permissions", ())),
        risk=_checked_risk(made.name, options.get("risk")),
        timeout_seconds=seconds,
        pause_seconds=pause,
        undo=name_of(options.get("undo", "")),
    )
    return replace(
        made,
        function=_through_ledger(rules),
        context_parameter=_CONTEXT,
        timeout_seconds=seconds + LEDGER_SECONDS,
        action=rules,
    )


def _through_ledger(rules: ActionRules) -> Callable[..., Awaitable[Any]]:
    async def run(**arguments: Any) -> Any:
        context: ToolContext = arguments.pop(_CONTEXT)
        if context.act is None:
            raise ToolError("An action runs within a turn only.")
        return await context.act(rules, arguments, context)

    return run


def _pause_seconds(pause: object, name: str) -> float | None:
    if pause is False:
        return None
    if pause is True:
        return MAX_PAUSE_SECONDS
    if not isinstance(pause, int | float) or not 0 < pause <= MAX_PAUSE_SECONDS:
        raise ToolDeclarationInvalid(f"Action {name!r}: pause is true, or seconds up to 30 days, not {pause!r}")
    return float(pause)


def _checked_key_rule(made: Tool, key: KeyRule | list[str] | None) -> KeyRule | None:
    if key is None or callable(key):
        return key
    names = (key,) if isinstance(key, str) else tuple(key)
    known: Mapping[str, Any] = _properties(made.input_schema)
    for name in names or ("",):
        if name not in known:
            listed = ", ".join(known) or "none"
            raise ToolDeclarationInvalid(
                f"Action {made.name!r}: key names {name!r}, which is none of its arguments ({listed})"
            )
    return names[0] if len(names) == 1 else names


def _properties(schema: JSONObject) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    return properties


def _checked_permissions(name: str, permissions: Iterable[str]) -> tuple[str, ...]:
    given = (permissions,) if isinstance(permissions, str) else tuple(permissions)
    if not all(str(each).strip() for each in given):
        raise ToolDeclarationInvalid(f"Action {name!r}: permissions are names, not {given!r}")
    return given


def _checked_risk(name: str, risk: object) -> Risk | None:
    match risk:
        case None | "low" | "medium" | "high":
            return risk
    raise ToolDeclarationInvalid(f"Action {name!r}: risk is one of {', '.join(RISKS)}, not {risk!r}")
