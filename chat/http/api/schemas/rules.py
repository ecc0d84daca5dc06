"""Schemas of rules about calls."""

from datetime import datetime
from typing import Annotated, Literal

from ninja import Field, Schema
from pydantic import StringConstraints

from chat.http.api.schemas.common import Input

Line = Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=r"^[^\x00\r\n]*$")]
Action = Literal["allow", "ask", "deny"]


class RuleOut(Schema):
    """A rule. `level`: whose it is; `instance_id`, `title`: of the conversation that it is about, empty for none.

    `name`: the rule in one line, as denials and calls name it. `may_change`: whether it is yours to change; others are
    the site's or the agent's. `created_by`: the user name of its maker, empty where there is none.
    """

    id: str
    level: Literal["site", "class", "owner", "conversation"]
    instance_id: str
    title: str
    action: Action
    key: str
    pattern: str
    name: str
    may_change: bool
    created_by: str
    created_at: datetime | None
    expires_at: datetime | None


class RulesOut(Schema):
    """Rules in the order in which they count: the last one that matches a call decides about it."""

    items: list[RuleOut]


class RuleIn(Input):
    """A rule. `key`: a tool's name, `mcp:name`, `@changes`, with `*` and `?`; `pattern`: what its calls are about.

    `expires_at`: when it stops counting; null for never.
    """

    action: Action
    key: Line
    pattern: Line = "*"
    expires_at: datetime | None = None


class NewRuleIn(RuleIn):
    """A new rule. `instance_id`: the conversation that it is for; empty for all of yours."""

    instance_id: Annotated[str, StringConstraints(max_length=64)] = ""


class RulesFileOut(Schema):
    """Your rules of one place in their order, as `import_rules` takes them."""

    rules: list[RuleIn]


class RulesFileIn(Input):
    """Rules to be added in this order, all or none. `replaces`: those that are there go."""

    rules: Annotated[list[RuleIn], Field(max_length=500)]
    instance_id: Annotated[str, StringConstraints(max_length=64)] = ""
    replaces: bool = False


class PlanIn(Input):
    """Whether the conversation is in plan mode."""

    is_on: bool


class PlanOut(Schema):
    """Whether the conversation is in plan mode: calls that change anything are refused."""

    is_on: bool
