"""The steps of a turn as hooks get them: made of the journal's records and the folded chunks.

A recovered turn has the steps of its earlier attempts, with what they were asked and answered.
"""

from collections.abc import Sequence
from dataclasses import replace

from chat.core.context.prompt import with_checkpoint, with_correction
from chat.core.loop.hooks import StepRecord
from chat.core.loop.request_records import RequestRecorder, body_of
from chat.core.loop.turn_state import TurnState
from chat.core.model.language_model import ModelMessage
from chat.core.model.output_schema import Output
from chat.errors import OutputInvalid
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue


class StepHistory:
    """Finished steps, oldest first, with the parts of each request that repeat the one before."""

    def __init__(self, fold: TurnState, request_id: str, output: Output | None, requests: RequestRecorder) -> None:
        self._fold = fold
        self._request_id = request_id
        self._output = output
        self._requests = requests
        self._settled: list[JSONObject] = []
        self._records: list[StepRecord] = []

    def __len__(self) -> int:
        return len(self._settled)

    def settled(self, record: JSONObject) -> None:
        """Note the record of a model call that ends its step."""
        stored = record.get("request")
        whole: JSONObject = {}
        if isinstance(stored, dict):
            whole = body_of(stored, self._requests.settled(stored))
        self._settled.append({**record, "request": whole})

    def describe(self, body: JSONObject, *, now: float) -> JSONObject:
        """A recorded request without the parts it shares with the one before: its pieces and a hash of the whole."""
        return self._requests.describe(body, now=now)

    def records(self) -> tuple[StepRecord, ...]:
        """The steps, each made once. Ask when the calls of the last one are settled, or they are missing from it."""
        self._records += [self._make(number) for number in range(len(self._records), len(self._settled))]
        return tuple(self._records)

    def correction(self) -> str:
        """The words for the model about its last step, as long as it may try again; empty where it need not.

        A step without calls is an answer: those before the last were of another form.
        """
        steps = self.records()
        if self._output is None or not steps or steps[-1].tool_calls:
            return ""
        wrong = [text for step in steps if not step.tool_calls and (text := self._output.correction_of(step.text))]
        return wrong[-1] if len(wrong) <= self._output.tries and self._output.correction_of(steps[-1].text) else ""

    def corrected(self, messages: Sequence[ModelMessage]) -> tuple[ModelMessage, ...]:
        """The messages of the next request, with what the model reads about an answer that it gives anew.

        A call that broke off behind a whole text goes on behind it instead.
        """
        broke_off = bool(self._fold.step_text()) and not self._fold.open_text() and self._fold.step_is_open
        text = "" if broke_off else self.correction()
        whole = with_checkpoint(messages)
        return with_correction(whole, text) if text else whole

    def _make(self, number: int) -> StepRecord:
        settled = self._settled[number]
        record = self._fold.step_record(request_id=self._request_id, number=number, settled=settled)
        return replace(record, request=settled.get("request", {}), output=self._read(record))

    def _read(self, record: StepRecord) -> JSONValue:
        if self._output is None or record.tool_calls:
            return None
        try:
            return self._output.read(record.text)
        except OutputInvalid:
            return None
