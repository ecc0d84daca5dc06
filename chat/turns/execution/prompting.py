"""Messages of a turn's model calls: the history under the agent's policy, and the answer so far.

The history can become another while the turn runs: results of approved calls are written into it, and a compaction has
it read anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from chat.conf import chat_settings
from chat.core.context.context_policy import ContextPolicy, truncate
from chat.core.context.prompt import to_model_messages, with_last_calls
from chat.core.context.result_files import PDF, has_cut_output
from chat.core.model.language_model import FileContent, LanguageModel, ModelMessage
from chat.turns.execution.turn_facts import has_content
from sessions_app.core.compaction.pruning import find_prunable
from sessions_app.core.messages.shapes import Message
from tools_app.session_tools import ReadMessages

CUT_OUTPUTS: Final = ContextPolicy(keep_messages=0, max_output_chars=2_000, max_text_chars=None)
"""The last resort where an answer's own calls have brought more than the model can read."""


@dataclass(slots=True)
class Prompt:
    """A function of the assistant's message so far.

    An override, a hook's own messages, stands in the place of the history and never of the answer.
    """

    history: list[Message]
    model: LanguageModel
    files: dict[str, FileContent] = field(kw_only=True)
    policy: ContextPolicy = field(kw_only=True)
    reads: ReadMessages = field(kw_only=True)
    override: Sequence[ModelMessage] | None = field(kw_only=True, default=None)
    note: str = field(kw_only=True, default="")  # for the model, after the history; never stored
    _sends_media: bool = field(init=False, default=True)
    _cuts_outputs: bool = field(init=False, default=False)
    _answer: list[Message] = field(init=False, default_factory=list)  # the answer as the last call had it

    @property
    def follows_history(self) -> bool:
        """Whether a changed history changes the messages sent."""
        return self.override is None

    def __call__(self, message: Message) -> tuple[ModelMessage, ...]:
        """Give the whole list to send."""
        answer = self._answer = [message] if has_content(message) else []
        if self.override is None:
            history = with_last_calls(self.history, self.policy)
            return self._convert(self.reads([*history, *self._noted()], answer))
        return (*self.override, *(self._convert(self.reads([], answer)) if answer else ()))

    def _noted(self) -> list[Message]:
        return [{"id": "", "role": "user", "parts": [{"type": "text", "text": self.note}]}] if self.note else []

    def drop_media(self) -> bool:
        """Name pictures and documents from now on instead of sending them; false when none were sent."""
        was_sent = self._sends_media and self.override is None and any(map(self._is_sent, self.files.values()))
        self._sends_media = False
        return was_sent

    def _is_sent(self, file: FileContent) -> bool:
        if not file.data:
            return False
        if file.media_type == PDF:
            return self.model.accepts_documents
        return file.media_type.startswith("image/") and self.model.accepts_images

    def has_cut_output(self, answer: Message) -> bool:
        """Whether the conversation or the answer so far has an output that the model may read on in."""
        return has_cut_output((*self.history, answer))

    def add_files(self, files: Mapping[str, FileContent]) -> None:
        """Add files that a tool has just returned; the oldest ones lose their bytes where a request has no room."""
        for url, file in files.items():
            self.files.pop(url, None)
            self.files[url] = file
        over = sum(len(file.data) for file in self.files.values()) - chat_settings.request_media_bytes
        for url, file in list(self.files.items()):
            if over <= 0:
                break
            over -= len(file.data)
            self.files[url] = replace(file, data=b"")

    def cut_outputs(self) -> bool:
        """Shorten tool outputs from now on, including this answer's; false if none was longer."""
        was_cut, self._cuts_outputs = self._cuts_outputs, True
        sent = [*(self.history if self.override is None else ()), *self._answer]
        return not was_cut and truncate(sent, CUT_OUTPUTS) != sent

    def find_prunable(self) -> dict[str, list[str]]:
        """Old outputs to let go now that the turn is over: ids of calls by message id. Nothing where that is off."""
        prune = self.policy.prune
        if prune is None or not chat_settings.prunes_outputs:
            return {}
        protected = prune.protected_tools | frozenset(chat_settings.unpruned_tools)
        return find_prunable(self.history, replace(prune, protected_tools=protected))

    def _convert(self, messages: list[Message]) -> tuple[ModelMessage, ...]:
        return to_model_messages(
            truncate(messages, CUT_OUTPUTS) if self._cuts_outputs else messages,
            accepts_images=self.model.accepts_images,
            accepts_documents=self.model.accepts_documents,
            load_file=self.files.get,
            policy=self.policy,
            sends_media=self._sends_media,
        )
