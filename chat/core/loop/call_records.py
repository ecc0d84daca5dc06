"""The journal's records of tool calls and of messages that an answer took in, and the chunks that show them."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from chat.core.loop.reply_chunks import reply_of
from chat.core.loop.turn_state import TurnState
from chat.core.wire import chunks
from chat.core.wire.accumulator import Accumulator
from chat.core.wire.chunks import Chunk
from sessions_app.core.messages.shapes import OURS, Message
from sessions_app.core.messages.steered import steered_in
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.core.questions import question_of
from tools_app.core.todos import TODO_WRITE, todos_in
from tools_app.core.tool_calls import CallStatus, ToolCall, ToolPause, ToolProgress, ToolResult, details_of

CALL_PREFIX: Final = "call:"
STEER_PREFIX: Final = "steer:"
"""Of the keys of messages that the answer has taken in, with the number of the model call that reads them."""


def recorded_outputs(fold: TurnState, records: Mapping[str, JSONValue]) -> list[Chunk]:
    """Outputs of calls and messages taken in that were settled and not yet logged, for a turn that ends. Folds them."""
    outputs: list[Chunk] = []
    for call in fold.unsettled_calls():
        record = records.get(f"{CALL_PREFIX}{call.call_id}")
        chunk = settling_chunk(call.call_id, record) if isinstance(record, dict) else None
        if chunk is not None:
            outputs.append(chunk)
            fold.apply(chunk)
    taken = [record for key, record in records.items() if key.startswith(STEER_PREFIX) and isinstance(record, dict)]
    said = steer_chunks(fold, [each for record in taken for each in record["messages"]])
    for chunk in said:
        fold.apply(chunk)
    return [*outputs, *said]


def steer_chunks(fold: TurnState, messages: Iterable[JSONObject]) -> list[Chunk]:
    """The chunks of messages that the answer has taken in, without those that it shows already."""
    shown = {said["id"] for said in steered_in(fold.message)}
    return [chunks.steer(said) for said in messages if said["id"] not in shown]


def with_recorded(message: Message, records: Mapping[str, JSONValue]) -> Message:
    """An answer with the results that were settled and may not be in the log yet."""
    answer = Accumulator(message)
    for key, record in records.items():
        if key.startswith(CALL_PREFIX) and isinstance(record, dict):
            chunk = settling_chunk(key.removeprefix(CALL_PREFIX), record)
            if chunk is not None:
                answer.apply(chunk)
    return answer.message


def cut_outputs(fold: TurnState, call_ids: Collection[str], text: str) -> list[Chunk]:
    """Outputs of calls that ran when their turn ended and will have no result: errors. Folds them."""
    cut = [call for call in fold.unsettled_calls() if call.call_id in call_ids]
    metadata: JSONObject = {OURS: details_of(is_interrupted=True)}
    outputs = [chunks.tool_output_error(call.call_id, text, metadata=metadata) for call in cut]
    for chunk in outputs:
        fold.apply(chunk)
    return outputs


def call_record(call: ToolCall, item: ToolResult | ToolPause) -> JSONObject:
    """The journal record of a call that is settled, or left to a client or a person."""
    if isinstance(item, ToolResult):
        record: JSONObject = {"output": item.output, "is_error": item.is_error, "ms": item.duration_ms}
        return {**record, **({"details": item.details} if item.details else {}), **reply_of(item)}
    return {
        "waits": item.status.value,
        "tool_name": call.tool_name,
        "input": call.input,
        "approval_id": item.approval_id,
        "expires_seconds": item.expires_seconds,
        "question": item.question,
    }


def settling_chunk(call_id: str, record: JSONObject) -> Chunk | None:
    """The chunk that shows how a call stands: its result, or the question to a person. A client's call needs none."""
    if record.get("waits") == CallStatus.ASKED:
        question = question_of(record.get("question"))
        descriptor = question.for_clients()
        if question.permissions is not None:  # an action's
            call = ToolCall(call_id=call_id, tool_name=record["tool_name"], input=record["input"])
            descriptor |= question.described(call)
        return chunks.tool_approval_request(record["approval_id"], call_id, descriptor)
    if "waits" in record:
        return None
    metadata = _metadata(record.get("details"))
    if record["is_error"]:
        return chunks.tool_output_error(call_id, str(record["output"]), metadata=metadata)
    return chunks.tool_output_available(call_id, record["output"], metadata=metadata)


def todo_chunk(call: ToolCall, record: JSONObject) -> Chunk | None:
    """The chunk that reports the to-do list which a call has written; nothing of another call."""
    is_written = call.tool_name == TODO_WRITE and not record.get("is_error", True)
    return chunks.todo_list(todos_in(record["output"])) if is_written else None


def progress_chunk(call_id: str, item: ToolProgress) -> Chunk:
    """The chunk that shows what a running call has given or said so far."""
    if not item.has_output:
        return chunks.tool_progress(call_id, item.details)
    return chunks.tool_output_available(call_id, item.output, preliminary=True, metadata=_metadata(item.details))


def _metadata(details: JSONObject | None) -> JSONObject | None:
    return {OURS: details} if details else None
