"""Questions of a server within a call: for words of a person (elicitation), or for an answer of a model (sampling).

A question is a call within the tool's call that a person decides about, so the page, the API, the admin and programs
answer it as they answer any other. The turn is parked meanwhile, and the tool's call is made again once there is a
decision; the server then asks again, and finds it. Without a decision in time, and outside of a turn, it is declined.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import mcp_types as types

from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, byte_size, dump, fingerprint
from tools_app.calls.services import settle_inner_call
from tools_app.core.inner_calls import inner_prefix
from tools_app.core.mcp.sampling import Sampler, SamplingRequest
from tools_app.core.questions import one_line
from tools_app.core.schema_check import problems
from tools_app.core.tool import AskedCall, Tool, ToolContext
from tools_app.core.tool_calls import ToolCall, ToolResult
from tools_app.errors import SchemaInvalid

ELICITATION: Final = "mcp_question"
SAMPLING: Final = "mcp_sampling"
MAX_QUESTION_BYTES: Final = 32_000
MAX_TOKENS: Final = 4_000
_DECLINED: Final = types.ErrorData(code=-1, message="The person declined.")


@dataclass(slots=True)
class Questions:
    """The questions of one call to a server."""

    server_name: str
    context: ToolContext
    sampler: Sampler | None = None
    _count: int = field(init=False, default=0)
    _answered: dict[str, str] = field(init=False, default_factory=dict)

    async def answer(self, question: Any) -> Any:
        """Answer a question. Errors: `Parked` while a person has not decided."""
        if isinstance(question, types.CreateMessageRequestParams):
            return await self._sampling(question)
        if isinstance(question, types.ElicitRequestURLParams):
            return await self._link(question)
        return await self._form(question)

    async def settle(self) -> None:
        """Write what became of the questions, once the call has ended."""
        for call_id, output in self._answered.items():
            result = ToolResult(output=output)
            await db(_settle, call_id, self.context.turn_id, result)
        self._answered.clear()

    async def _form(self, question: types.ElicitRequestFormParams) -> types.ElicitResult:
        schema: JSONObject = question.model_dump(by_alias=True, exclude_none=True)["requestedSchema"]
        if not _is_fit(schema):
            return types.ElicitResult(action="decline")
        content = await self._decide(ELICITATION, question.message, _defaults(schema), schema)
        if content is None:
            return types.ElicitResult(action="decline")
        if problems(content, schema):  # it was approved as it was, and lacks what the server needs
            return types.ElicitResult(action="cancel")
        return types.ElicitResult(action="accept", content=content)

    async def _link(self, question: types.ElicitRequestURLParams) -> types.ElicitResult:
        decided = await self._decide(ELICITATION, question.message, {"url": question.url}, None)
        return types.ElicitResult(action="decline" if decided is None else "accept")

    async def _sampling(self, question: types.CreateMessageRequestParams) -> Any:
        if self.sampler is None:
            return _DECLINED
        request = SamplingRequest(
            system=question.system_prompt or "",
            messages=tuple((message.role, _text(message.content)) for message in question.messages),
            max_tokens=min(question.max_tokens, MAX_TOKENS),
        )
        shown: JSONObject = {
            "system": request.system,
            "messages": [{"role": role, "text": text} for role, text in request.messages],
            "max_tokens": request.max_tokens,
        }
        words = f"{self.server_name} wants to ask the model: {request.messages[-1][1] if request.messages else ''}"
        if byte_size(shown) > MAX_QUESTION_BYTES or await self._decide(SAMPLING, words, shown, None) is None:
            return _DECLINED
        sampled = await self.sampler(request)
        return types.CreateMessageResult(
            role="assistant",
            content=types.TextContent(text=sampled.text),
            model=sampled.model,
            stop_reason="endTurn",
        )

    async def _decide(self, name: str, words: str, given: JSONObject, schema: JSONObject | None) -> JSONObject | None:
        """The input that a person let through, changed or not; nothing when it was declined or none could be asked."""
        self._count += 1
        asker = self.context.asker
        if asker is None:
            return None
        mark = fingerprint([name, words, given, schema])[:8]  # of the question: another one is another call
        call_id = f"{inner_prefix(self.context.call_id)}q{self._count}-{mark}"
        tool = Tool(
            name=name,
            title=f"{self.server_name} asks"[:80],
            description="",
            input_schema=schema or {"type": "object"},
            function=_never,
            approval_text=lambda _input: one_line(words),
            editable=schema is not None,
        )
        call = ToolCall(call_id=call_id, tool_name=name, input=given)
        decision = await asker(AskedCall(tool=tool, call=call, ordinal=self._count, context=self.context))
        if not decision.is_approved:
            return None
        content = given if decision.edited_input is None else decision.edited_input
        self._answered[call_id] = dump(content)
        return content


def _settle(call_id: str, turn_id: str, result: ToolResult) -> None:
    settle_inner_call(call_id, turn_id=turn_id, result=result)


def _never(**_: object) -> None:
    raise AssertionError("a question is answered, not run")


def _is_fit(schema: JSONObject) -> bool:
    try:
        problems({}, schema)
    except SchemaInvalid:
        return False
    return schema.get("type") == "object" and byte_size(schema) <= MAX_QUESTION_BYTES


def _defaults(schema: Mapping[str, Any]) -> JSONObject:
    properties = schema.get("properties")
    found = properties.items() if isinstance(properties, dict) else ()
    return {name: field["default"] for name, field in found if isinstance(field, dict) and "default" in field}


def _text(content: Any) -> str:
    blocks = content if isinstance(content, list) else [content]
    return "\n".join(block.text for block in blocks if isinstance(block, types.TextContent))
