"""Messages of a turn's model calls: the history under the agent's policy, and the answer so far.

The history can become another while the turn runs: results of approved calls are written into it, and a compaction has
it read anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_

from chat.core.context.context_policy import ContextPolicy, truncate
from chat.core.context.cut_border import cut_border
from chat.core.context.prompt import messages_in_sight, text_of, with_last_calls
from chat.core.context.result_files import PDF, Sight, has_cut_output
from chat.core.context.too_large import LEAST_CHARS
from chat.core.model.language_model import FileContent, LanguageModel, ModelMessage, TextContent, UserMessage
from chat.llm.registry import limits_of
from chat.turns.conf import turn_settings
from chat.turns.execution.turn_facts import has_content
from sessions_app.core.compaction.pruning import find_prunable
from sessions_app.core.compaction.tokens import CHARS_PER_TOKEN
from sessions_app.core.messages.forms import NO_FORMS, KeptForms
from sessions_app.core.messages.messages import MessageRole
from sessions_app.core.messages.parts import is_tool
from sessions_app.core.messages.shapes import Message
from sessions_app.core.messages.shortening import json_length
from sessions_app.core.messages.truncation import cut_text
from tools_app.session_tools import ReadMessages


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
    forms: KeptForms = field(kw_only=True, default=NO_FORMS)  # of the history's messages
    context_note: str = field(kw_only=True, default="")  # for the model, behind the question; never stored
    note: str = field(kw_only=True, default="")  # for the model, after the history; never stored
    _sends_media: bool = field(init=False, default=True)
    _max_chars: int | None = field(init=False, default=None)  # of each output, and of each earlier message
    _cuts_texts: bool = field(init=False, default=False)
    _cut: tuple[list[Message], list[Message]] | None = field(init=False, default=None)  # a history, and it as it is cut
    _answer: list[Message] = field(init=False, default_factory=list)  # the answer as the last call had it

    @property
    def follows_history(self) -> bool:
        """Whether a changed history changes the messages sent."""
        return self.override is None

    def __call__(self, message: Message) -> tuple[ModelMessage, ...]:
        """Give the whole list to send."""
        answer = self._answer = [message] if has_content(message) else []
        if self.override is None:
            history = with_last_calls(self._cut_history(), self.policy)
            history = with_note(history, self.context_note)
            return self._convert(
                self.reads([*history, *([_note(self.note)] if self.note else [])], self._cut_answer(answer))
            )
        override = with_note_of_context(self.override, self.context_note)
        return (*override, *(self._convert(self.reads([], self._cut_answer(answer))) if answer else ()))

    def drop_media(self) -> bool:
        """Name pictures and documents from now on instead of sending them; false when none were sent."""
        sent = self._sends_media and self.override is None
        self._sends_media = False
        return sent and any(_takes(self.model, file) for file in self.files.values())

    def has_cut_output(self, answer: Message) -> bool:
        """Whether the conversation or the answer so far has an output that the model may read on in."""
        return has_cut_output((*self.history, answer))

    def add_files(self, files: Mapping[str, FileContent]) -> None:
        """Add files that a tool has just returned; the oldest ones lose their bytes where a request has no room."""
        for url, file in files.items():
            self.files.pop(url, None)
            self.files[url] = file
        over = sum(len(file.data) for file in self.files.values()) - turn_settings.request_media_bytes
        for url, file in list(self.files.items()):
            if over <= 0:
                break
            over -= len(file.data)
            self.files[url] = replace(file, data=b"")

    def cut_long(self, max_chars: int = LEAST_CHARS, *, texts: bool = True) -> bool:
        """Shorten what is longer from now on: outputs, the answer's too, and earlier messages with their files.

        Without `texts` outputs alone. False if nothing was longer. The question stays as it is: half of it would be
        another one.
        """
        if self._max_chars is not None and self._max_chars <= max_chars:
            return False
        before = self._sent(), self._earlier_files()
        self._max_chars, self._cuts_texts = max_chars, texts
        return (self._sent(), self._earlier_files()) != before

    def question(self) -> Message | None:
        """The message that is being answered: the user's last; none where a hook's messages stand in its place."""
        users = (message for message in reversed(self.history) if message.get("role") == "user")
        return next(users, None) if self.override is None else None

    def sizes(self) -> tuple[int, list[int], list[int]]:
        """Characters of the question, of each earlier message, file and output, and of the answer's outputs."""
        question = self.question()
        sent = (
            [] if self.override is not None else [message for message in self._cut_history() if message is not question]
        )
        earlier = [size for message in sent for size in _sizes(message)]
        earlier += map(len, self._earlier_files())
        asked = 0 if question is None else sum(_sizes(question)) + sum(map(len, self._files_of(question)))
        return asked, earlier, [size for message in self._cut_answer(self._answer) for size in _outputs(message)]

    def _sent(self) -> list[Message]:
        return [*(self._cut_history() if self.override is None else ()), *self._cut_answer(self._answer)]

    def _kept_history(self) -> list[Message]:
        """The history under a policy whose cut waits; under others it is cut where it is converted."""
        if not self.policy.cut_ratio or self.override is not None:
            return self.history
        if self._cut is None or not _are_same(self._cut[0], self.history):
            window_chars = limits_of(self.model).context_tokens * CHARS_PER_TOKEN
            border = cut_border(self.history, self.policy, window_chars=window_chars, forms=self.forms)
            self._cut = list(self.history), truncate(self.history, self.policy, border=border, forms=self.forms)
        return self._cut[1]

    def _cut_history(self) -> list[Message]:
        kept = self._kept_history()
        if self._max_chars is None:
            return kept
        question = self.question()
        max_text_chars = self._max_chars if self._cuts_texts else None
        policy = ContextPolicy(keep_messages=0, max_output_chars=self._max_chars, max_text_chars=max_text_chars)
        return [message if message is question else truncate([message], policy)[0] for message in kept]

    def _cut_answer(self, answer: list[Message]) -> list[Message]:
        if self._max_chars is None:
            return answer
        return truncate(answer, ContextPolicy(keep_messages=0, max_output_chars=self._max_chars, max_text_chars=None))

    def _earlier_files(self) -> list[str]:
        """Texts of files before the question."""
        asked = self.question()
        earlier = [message for message in self.history if message is not asked] if self.override is None else []
        return [text for message in earlier for text in self._files_of(message)]

    def _files_of(self, message: Message) -> list[str]:
        urls = (str(part.get("url") or "") for part in message.get("parts") or [] if part.get("type") == "file")
        found = [self._loaded(file) for url in urls if (file := self.files.get(url)) is not None]
        return [text for text in map(self._text_of, found) if text is not None]

    def _text_of(self, file: FileContent) -> str | None:
        """The text by which a file is sent; none where the file itself is."""
        return None if self._sends_media and _takes(self.model, file) else text_of(file)

    def _load(self, url: str) -> FileContent | None:
        """A file as it is sent: one of text from before the question is cut like the messages there."""
        file = self.files.get(url)
        asked = self.question()
        is_asked = asked is not None and any(part.get("url") == url for part in asked.get("parts") or [])
        return file if file is None or is_asked else self._loaded(file)

    def _loaded(self, file: FileContent) -> FileContent:
        text = self._text_of(file)
        if self._max_chars is None or not self._cuts_texts or text is None:
            return file
        return replace(file, text=cut_text(text, self._max_chars))

    def find_prunable(self) -> dict[str, list[str]]:
        """Old outputs to let go now that the turn is over: ids of calls by message id. Nothing where that is off."""
        prune = self.policy.prune
        if prune is None or not turn_settings.prunes_outputs:
            return {}
        protected = prune.protected_tools | frozenset(turn_settings.unpruned_tools)
        return find_prunable(self._kept_history(), replace(prune, protected_tools=protected))

    def _convert(self, messages: list[Message]) -> tuple[ModelMessage, ...]:
        sight = Sight(
            accepts_images=self.model.accepts_images,
            accepts_documents=self.model.accepts_documents,
            load_file=self._load,
            sends_media=self._sends_media,
        )
        policy = self.policy.as_cut() if self.policy.cut_ratio else self.policy
        return messages_in_sight(messages, sight, policy=policy, forms=self.forms)


def _takes(model: LanguageModel, file: FileContent) -> bool:
    """Whether a model is sent this file itself."""
    if not file.data:
        return False
    if file.media_type == PDF:
        return model.accepts_documents
    return file.media_type.startswith("image/") and model.accepts_images


def with_note(history: list[Message], text: str) -> list[Message]:
    """The history with a note behind its last question, where an answer that goes on is not parted from its end."""
    if not text:
        return history
    roles = [message["role"] for message in history]
    place = len(roles) - roles[::-1].index(MessageRole.USER) if MessageRole.USER in roles else 0
    return [*history[:place], _note(text), *history[place:]]


def _note(text: str) -> Message:
    return {"id": "", "role": "user", "parts": [{"type": "text", "text": text}]}


def with_note_of_context(messages: Sequence[ModelMessage], text: str) -> tuple[ModelMessage, ...]:
    """The same for messages of a hook."""
    places = [place for place, message in enumerate(messages) if isinstance(message, UserMessage)]
    if not text or not places:
        return tuple(messages)
    question = messages[places[-1]]
    assert isinstance(question, UserMessage)
    noted = replace(question, content=(*question.content, TextContent(text=text)))
    return (*messages[: places[-1]], noted, *messages[places[-1] + 1 :])


def _are_same(some: Sequence[Message], others: Sequence[Message]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


def _sizes(message: Message) -> list[int]:
    """Characters of each text and output of a message."""
    texts = [len(str(part.get("text") or "")) for part in message.get("parts") or [] if part.get("type") == "text"]
    return [*texts, *_outputs(message)]


def _outputs(message: Message) -> list[int]:
    parts = [part for part in message.get("parts") or [] if is_tool(part)]
    return [json_length(part.get("errorText") if "errorText" in part else part.get("output")) for part in parts]
