"""Memory of the scripted provider between requests: counts the uses of directives with `times`."""

from chat.llm.scripted.plan import Plan
from chat.llm.scripted.script import Cut, HttpError
from thinkproject.kernel.jsonvalue import JSONObject


class Memory:
    """Counts per conversation, round and directive. `rejects`: body keys that are refused with status 400."""

    def __init__(self, rejects: tuple[str, ...] = ()) -> None:
        self._rejects = rejects
        self._used: dict[tuple[str, int, int], int] = {}

    def refusal(self, plan: Plan, body: JSONObject, size: int) -> HttpError | None:
        """The error this request gets instead of an answer. `size` is the prompt's in characters."""
        rejected = next((key for key in self._rejects if key in body), None)
        if rejected:
            message = f"Unrecognized request argument supplied: {rejected}"
            return HttpError(line=-1, status=400, code="invalid_request_error", message=message)
        for error in plan.errors:
            if size >= error.above_characters and self._take(plan, error.line, error.times):
                return error
        return None

    def first_cut(self, plan: Plan) -> Cut | None:
        """The break this answer gets."""
        return next((cut for cut in plan.cuts if self._take(plan, cut.line, cut.times)), None)

    def _take(self, plan: Plan, line: int, times: int | None) -> bool:
        key = (plan.marker, plan.round, line)
        used = self._used.get(key, 0)
        if times is not None and used >= times:
            return False
        self._used[key] = used + 1
        return True
