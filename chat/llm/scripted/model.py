"""`ScriptedModel`: the script language without a server, for tests of agents that need no HTTP."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Final

from chat.core.model.language_model import ModelEvent, ModelRequest
from chat.errors import NetworkLost
from chat.llm.adapters.adapter import known_call_ids
from chat.llm.adapters.chat_completions import chat_messages, chat_settings, chat_tool_choice
from chat.llm.adapters.chat_reader import ChatReader
from chat.llm.adapters.endings import ended
from chat.llm.adapters.provider_errors import Failure, classify, retry_after_seconds
from chat.llm.adapters.redaction import redact_body
from chat.llm.adapters.sse import SSEDecoder
from chat.llm.scripted.asked import read_asked
from chat.llm.scripted.memory import Memory
from chat.llm.scripted.plan import Defaults, Plan, Unit, make_plan, read_chat
from chat.llm.scripted.recordings import read_recording
from chat.llm.scripted.script import Cut
from chat.llm.scripted.server import finish_of, refused_request
from chat.llm.scripted.wires import ChatWire
from thinkproject.kernel.jsonvalue import JSONObject

_FOREVER_SECONDS: Final = 3600.0


class ScriptedModel:
    """A model in this process that answers like the scripted provider.

    `script`, if given, answers every message; otherwise the user's message is the script. `requests` keeps the bodies.
    `recordings`: the folder that `play` takes answers from.
    """

    def __init__(
        self,
        script: str = "",
        *,
        defaults: Defaults | None = None,
        name: str = "scripted/model",
        recordings: Path = Path(),
    ) -> None:
        self._name = name
        self._scripts = [("", script)] if script else []
        self._defaults = defaults or Defaults()
        self._memory = Memory()
        self._recordings = recordings
        self.requests: list[JSONObject] = []

    @property
    def name(self) -> str:
        """`provider/model`."""
        return self._name

    @property
    def accepts_images(self) -> bool:
        """It sees pictures, in so far as it sees anything."""
        return True

    @property
    def accepts_documents(self) -> bool:
        """It takes documents, as it takes pictures."""
        return True

    def describe(self, request: ModelRequest) -> JSONObject:
        """The body in the form of Chat Completions."""
        return redact_body(self._body(request))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Answer from the script. Errors: the `ModelError` that the script requests."""
        body = self._body(request)
        self.requests.append(body)
        system, messages = read_chat(body)
        plan = make_plan(system, messages, self._scripts, self._defaults, read_asked(body))
        await self._refuse(plan, body, len(system) + sum(len(message.text) for message in messages))
        if plan.plays:
            for item in self._play(plan, request):
                yield item
            return
        async for item in self._speak(plan, request):
            yield item

    async def _speak(self, plan: Plan, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        cut = self._memory.first_cut(plan)
        wire = ChatWire("in-process", "model", with_usage=True)
        reader = ChatReader(self._name, (), known_call_ids(request.messages))
        decoder = SSEDecoder()
        sent = 0
        lies = {lie.at: lie.how for lie in plan.lies}
        for unit in (*plan.units, None):
            if cut is not None and sent >= cut.after:
                for event in decoder.feed(await _cut(cut, wire)):
                    reader.feed(event.data)
                cut = None
            if unit is None:
                break
            await _pace(unit)
            data = wire.unit(unit)
            lie = lies.get(sent) if unit.kind != "call_end" else None
            for event in decoder.feed({"skip": b"", "repeat": data + data}.get(lie or "", data)):
                for item in reader.feed(event.data):
                    yield item
            sent += unit.kind != "call_end"
        for event in decoder.feed(wire.end(finish_of(plan), plan.usage)):
            reader.feed(event.data)
        for item in ended(self._name, reader, request):
            yield item

    def _play(self, plan: Plan, request: ModelRequest) -> Iterator[ModelEvent]:
        reader = ChatReader(self._name, (), known_call_ids(request.messages))
        decoder = SSEDecoder()
        body = read_recording(self._recordings, plan.plays).body
        for event in (*decoder.feed(body), *decoder.flush()):
            yield from reader.feed(event.data)
        yield from ended(self._name, reader, request)

    def _body(self, request: ModelRequest) -> JSONObject:
        tools = [{"name": tool.name, "parameters": tool.input_schema} for tool in request.tools]
        body: JSONObject = {
            "model": self._name,
            "messages": chat_messages(request, self._name, accepts_images=True, accepts_documents=True),
            "tools": tools,
        }
        if request.tools and request.tool_choice != "auto":
            body["tool_choice"] = chat_tool_choice(request.tool_choice)
        options = request.settings.provider_options.get(self._name.partition("/")[0], {})
        return {**body, **chat_settings(request.settings), **request.settings.extra, **options}

    async def _refuse(self, plan: Plan, body: JSONObject, size: int) -> None:
        error = self._memory.refusal(plan, body, size) or refused_request(self._recordings, plan, body)
        if error is not None:
            wait = retry_after_seconds(dict(error.headers), now=0.0)
            raise classify(
                Failure(
                    provider="scripted",
                    status=error.status,
                    code=error.code,
                    text=error.message,
                    retry_after_seconds=wait,
                )
            )


async def _pace(unit: Unit) -> None:
    seconds = unit.pause + (1 / unit.rate if unit.rate else 0.0)
    await asyncio.sleep(seconds)


async def _cut(cut: Cut, wire: ChatWire) -> bytes:
    """Perform a scripted fault and return the chunks to send. Errors: `NetworkLost` for a dropped connection."""
    if cut.how in ("stall", "hang"):
        await asyncio.sleep(cut.seconds if cut.seconds is not None else _FOREVER_SECONDS)
        return b""
    if cut.how == "garbage":
        return b"data: {this is not JSON}\n\n"
    if cut.how == "error":
        return wire.error(cut.code, "The script asked for an error in the stream.")
    raise NetworkLost("The connection to scripted ended in the middle of the answer.", provider="scripted")
