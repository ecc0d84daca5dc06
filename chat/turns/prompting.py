"""What the model calls of one turn are sent: the history, as the agent's policy lets it through, and the answer so far.

The history can become another while the turn runs: results of approved calls are written into it, and a compaction has
it read anew.
"""

from collections.abc import Sequence
from dataclasses import replace

from chat.conf import chat_settings
from chat.core.context_policy import ContextPolicy
from chat.core.language_model import FileContent, LanguageModel, ModelMessage
from chat.core.prompt import to_model_messages, with_last_calls
from chat.turns.persistence import has_content
from sessions_app.core.pruning import find_prunable
from thinkproject.kernel.jsonvalue import JSONObject


class Prompt:
    """A function of the assistant's message so far.

    An override, a hook's own messages, stands in the place of the history and never of the answer.
    """

    def __init__(
        self,
        history: list[JSONObject],
        model: LanguageModel,
        files: dict[str, FileContent],
        policy: ContextPolicy,
        override: Sequence[ModelMessage] | None = None,
    ) -> None:
        self.history = history
        self._model = model
        self._files = files
        self._policy = policy
        self._override = None if override is None else tuple(override)
        self._sends_media = True

    @property
    def follows_history(self) -> bool:
        """Whether a change of the history changes what is sent."""
        return self._override is None

    def __call__(self, message: JSONObject) -> tuple[ModelMessage, ...]:
        """Give the whole list to send."""
        said = [message] if has_content(message) else []
        if self._override is None:
            return self._convert([*with_last_calls(self.history, self._policy), *said])
        return (*self._override, *(self._convert(said) if said else ()))

    def drop_media(self) -> bool:
        """Name pictures from now on instead of sending them; false when none were sent."""
        was_sent = self._sends_media and self._override is None and self._model.accepts_images
        self._sends_media = False
        return was_sent and any(file.media_type.startswith("image/") for file in self._files.values())

    def find_prunable(self) -> dict[str, list[str]]:
        """Old outputs to let go now that the turn is over: ids of calls by message id. Nothing where that is off."""
        prune = self._policy.prune
        if prune is None or not chat_settings.prunes_outputs:
            return {}
        protected = prune.protected_tools | frozenset(chat_settings.unpruned_tools)
        return find_prunable(self.history, replace(prune, protected_tools=protected))

    def _convert(self, messages: list[JSONObject]) -> tuple[ModelMessage, ...]:
        return to_model_messages(
            messages,
            accepts_images=self._model.accepts_images,
            load_file=self._files.get,
            policy=self._policy,
            sends_media=self._sends_media,
        )
