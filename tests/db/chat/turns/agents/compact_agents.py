"""Agents that compact, each in its way. Importing this module serves them."""

from collections.abc import Sequence
from typing import Any

from chat.llm.scripted import ScriptedModel
from chat.think import SessionSetup
from sessions_app.core.compaction.compaction import CompactionResult
from sessions_app.core.messages.shapes import Message
from tests.db.chat.turns.agents.everyday import SEEN, Plain

SUMMARIES: dict[str, Any] = {}
"""What the function of `OwnCompaction` gives or raises, by the key "next"."""


class OwnCompaction(Plain):
    """Summarises by a function of its own, when the history has more than ten tokens."""

    threshold = 10

    def configure_session(self, session: SessionSetup) -> SessionSetup:
        return (
            session.on_compaction(self.shorten).on_compaction_error(self.sent).compact_after(self.threshold)
            if self.threshold
            else session.on_compaction(self.shorten)
        )

    async def shorten(self, history: Sequence[Message]) -> Any:
        SEEN.append(("history", [message["id"] for message in history]))
        found = SUMMARIES.get("next", "own summary")
        if isinstance(found, Exception):
            raise found
        return CompactionResult(first_id=history[0]["id"], last_id=history[-2]["id"], summary=found)

    def sent(self, error: Exception) -> None:
        SEEN.append(("error", str(error)))
        raise RuntimeError("the handler fails too")


class HighThreshold(OwnCompaction):
    """Never gets there."""

    threshold = 100_000


class FillingUp(OwnCompaction):
    """Is nearly full after a few turns."""

    threshold = 4_000


class NoThreshold(OwnCompaction):
    """Compacts when it is asked to."""

    threshold = 0


class ByModel(Plain):
    """Has its summaries written by another model."""

    compaction_model = ScriptedModel("say: the model's summary", name="scripted/small")
