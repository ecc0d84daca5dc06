"""Worker agents: an agent for one task, with an input and an output of a declared form and no memory of others.

A worker is a tool: `get_tools` returns it, and code runs it. One that is not durable answers in the process of its
caller, from the start again after a crash. A durable one is a sub-agent: its turn, its calls and its answer are rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from asgiref.sync import async_to_sync
from pydantic import BaseModel, ValidationError

from chat.agent.declared import kebab
from chat.agent.think import Think
from chat.agent.values.runs import RunRequest, input_text
from chat.core.loop.hooks import TurnConfig, TurnContext
from chat.core.model.output_schema import Output
from chat.errors import InputInvalid, TurnConflict
from chat.instances.rows import key_of
from chat.llm.registry import AnyChoice
from chat.models import Turn
from chat.sub_agents.service import InstanceSubAgents
from chat.workers.memory import MemoryJob, run_in_memory, to_messages
from fibers.context import current_fiber
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from thinkproject.kernel.phrases import Phrase
from tools_app.core.tool import Tool, ToolContext
from tools_app.errors import ToolError

WORKER_TRIES: Final = 2
"""How often a worker is asked again after an output of another form."""

BuildMessages: TypeAlias = Callable[[Any], Sequence[tuple[str, str]] | str]
"""From the checked input to what the model reads: a text, or pairs of a role (`user`, `assistant`) and a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSpec:
    """The declaration of a worker. `output`: `None` for plain text. `agent_class`: of a durable one."""

    model: AnyChoice
    instructions: str
    tools: Sequence[Tool] = ()
    input_schema: type[BaseModel] | None = None
    output: Output | None = None
    build_messages: BuildMessages | None = None
    max_steps: int = 10
    agent_class: type[Think] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerAgent(Tool):
    """A worker agent: a tool, with `run` for code."""

    worker: WorkerSpec

    async def run(self, input: Any, *, context: ToolContext | None = None) -> Any:  # noqa: A002 - as tools name it
        """Have the worker do one task, and wait for its output: an object of the class of the schema, where it is one.

        `input`: an object of the input's class, or JSON. `context`: of the call that it is done for; a durable worker
        is run within a turn only. Cancelling the task stops the worker. Errors: `InputInvalid`, `OutputInvalid`,
        `ModelError`, `ToolError` for a durable worker that fails.
        """
        checked = _checked(self.worker.input_schema, input)
        value = await self._durable(checked) if self.worker.agent_class else await self._here(checked, context)
        schema = None if self.worker.output is None else self.worker.output.schema
        return schema.model_validate(value) if isinstance(schema, type) else value

    def run_sync(self, input: Any) -> Any:  # noqa: A002 - as above
        """Do the same from code that is not async."""
        return async_to_sync(self.run)(input)

    async def _here(self, checked: Any, context: ToolContext | None) -> JSONValue:
        spec = self.worker
        answer = await run_in_memory(
            MemoryJob(
                model=spec.model,
                instructions=spec.instructions,
                messages=to_messages(_pairs(spec, checked)),
                tools=spec.tools,
                output=spec.output,
                max_steps=spec.max_steps,
                caller=context,
            )
        )
        return answer.text if spec.output is None else answer.output

    async def _durable(self, checked: Any) -> JSONValue:
        fiber = current_fiber()
        turn_id = None if fiber is None else fiber.payload.get("turn_id")
        turn = await db(lambda: Turn.objects.select_related("instance").filter(pk=turn_id).first())
        if turn is None:
            raise TurnConflict("A durable worker is run within a turn. Run it as a tool of an agent.")
        assert self.worker.agent_class is not None
        text = "\n\n".join(text for _, text in _pairs(self.worker, checked))
        request = RunRequest(agent=self.worker.agent_class.route_name(), input=text, display={"name": self.title})
        outcome = await InstanceSubAgents(key_of(turn.instance)).run(request)
        if not outcome["ok"]:
            raise ToolError(str(outcome["error"]))
        return outcome["summary"] if self.worker.output is None else outcome["output"]


class DurableWorker(Think, abstract=True):
    """The class behind a durable worker."""

    listed = False
    workspace_tools = False
    tells_time = False
    title_model = "none"
    summary_model = "none"
    worker: WorkerSpec

    def get_model(self) -> Any:
        """The worker's."""
        return self.worker.model

    def get_system_prompt(self) -> Any:
        """The worker's instructions."""
        return self.worker.instructions

    def get_tools(self) -> Any:
        """The worker's."""
        return self.worker.tools

    def get_max_steps(self) -> Any:
        """The worker's."""
        return self.worker.max_steps

    def before_turn(self, context: TurnContext) -> Any:
        """Ask for the form of the output."""
        del context
        return TurnConfig(output=self.worker.output)


def make_worker(
    name: str, description: str, title: str, spec: WorkerSpec, *, module: str, is_durable: bool
) -> WorkerAgent:
    """Make a worker; a durable one gets a class of its own, named after it."""
    if is_durable:
        class_name = "".join(word.capitalize() for word in kebab(name).split("-"))
        cls: Any = type(
            class_name, (DurableWorker,), {"__module__": module, "worker": spec, "description": description}
        )
        spec = replace(spec, agent_class=cls)
        cls.worker = spec
    schema: JSONObject = _TASK if spec.input_schema is None else spec.input_schema.model_json_schema()
    made = WorkerAgent(
        name=name,
        description=description,
        input_schema=schema,
        function=None,
        context_parameter="context",
        title=title,
        timeout_seconds=WORKER_SECONDS,
        read_only=all(tool.read_only for tool in spec.tools),
        open_world=any(tool.open_world for tool in spec.tools),
        worker=spec,
    )

    async def work(input: JSONObject, context: ToolContext) -> JSONValue:  # noqa: A002 - as tools get it
        found = await made.run(input, context=context)
        return found.model_dump(mode="json") if isinstance(found, BaseModel) else found

    return replace(made, function=work)


WORKER_SECONDS: Final = 600.0
"""How long a call of a worker may take."""

_TASK: Final[JSONObject] = {
    "type": "object",
    "properties": {"task": {"type": "string", "description": "What to do, with everything that has to be known."}},
    "required": ["task"],
    "additionalProperties": False,
}


def _checked(schema: type[BaseModel] | None, value: Any) -> Any:
    if schema is None or isinstance(value, schema):
        return value
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        raise InputInvalid(Phrase("The input of the worker: {error}", error=error)) from error


def _pairs(spec: WorkerSpec, checked: Any) -> Sequence[tuple[str, str]]:
    plain = checked.model_dump(mode="json") if isinstance(checked, BaseModel) else checked
    built = input_text(plain) if spec.build_messages is None else spec.build_messages(checked)
    return [("user", built)] if isinstance(built, str) else built
