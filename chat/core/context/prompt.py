"""Convert stored UI messages into a valid list of model messages.

Whatever the history holds (cut turns, calls without results, denied approvals, odd inputs, ids used twice), the list is
one that every provider accepts: each call has exactly one result, directly after the message that made it; no text is
empty; the first message is the user's, and the last is never the assistant's. Nothing here changes what is stored.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

from chat.core.context.context_policy import READ_TIME, ContextPolicy, keep_ends, newest, truncate, without_calls
from chat.core.context.result_files import LoadFile, Sight, cut_note, files_of, with_lines
from chat.core.context.sent_note import sent_note
from chat.core.model.language_model import (
    AssistantMessage,
    FileContent,
    ModelMessage,
    ReasoningContent,
    TextContent,
    ToolCallContent,
    ToolMessage,
    UserMessage,
)
from chat.core.wire.accumulator import to_input_object, tool_name
from sessions_app.core.messages import call_texts
from sessions_app.core.messages.forms import NO_FORMS, KeptForms
from sessions_app.core.messages.parts import is_lasting
from sessions_app.core.messages.shapes import CALLED_BY, OURS, Message, Part
from sessions_app.core.messages.steered import steered
from sessions_app.core.messages.tool_states import ToolState
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump
from tools_app.core.deferral import CALL
from tools_app.core.files.embedded import without_data
from tools_app.core.files.encodings import detected, shown_text
from tools_app.core.files.kinds import kind_name

GO_ON_TEXT: Final = "Continue your previous response from exactly where it left off. Do not repeat any of it."
"""The instruction to continue, for a history that ends with the model's own message. Never stored."""

NOTHING_TEXT: Final = "(The message is empty.)"
FIRST_TEXT: Final = "(The conversation begins with a message of yours.)"
"""The user's message before a history that begins with the model's: several providers refuse one without."""

WAITING_TEXT: Final = (
    "This call has not run: it waits for a person's approval, which may take days. Do not make it again. Its result "
    "will be added here."
)
EDITED_TEXT: Final = "The user changed the arguments before approving the call. It ran with:"

DECIDED_TEXT: Final = (
    "[This is not from the user. Calls that you made earlier and that waited for a person's approval have been decided "
    "meanwhile. Go on from there.]"
)
MAX_NOTED_CHARS: Final = 2_000
"""Of a result in the note; the whole stands with the call, unless a summary covers it."""

_ALONE: Final = frozenset({"text", "step-start"})
"""Types of parts of which nothing but themselves decides what becomes of them."""

_GO_ON: Final = UserMessage(content=(TextContent(text=GO_ON_TEXT),))

UserContent: TypeAlias = TextContent | FileContent
AssistantContent: TypeAlias = TextContent | ReasoningContent | ToolCallContent


def to_model_messages(
    messages: Sequence[Message],
    *,
    accepts_images: bool = False,
    accepts_documents: bool = False,
    load_file: LoadFile | None = None,
    policy: ContextPolicy | None = READ_TIME,
    sends_media: bool = True,
) -> tuple[ModelMessage, ...]:
    """Make the model's messages of UI messages.

    Shape: oldest first in and out; begins with a `UserMessage`, never ends with an `AssistantMessage`, each call is
    followed by its one result before the next message. `load_file` gets the URL of a file part; `None` means it is
    gone. Without `sends_media` a line names each picture and the like; files of text are sent all the same. A
    line below each message of the user's says when it was sent, where that is known.
    """
    sight = Sight(
        accepts_images=accepts_images,
        accepts_documents=accepts_documents,
        load_file=load_file or (lambda _url: None),
        sends_media=sends_media,
    )
    return messages_in_sight(messages, sight, policy=policy)


def messages_in_sight(
    messages: Sequence[Message], sight: Sight, *, policy: ContextPolicy | None, forms: KeptForms = NO_FORMS
) -> tuple[ModelMessage, ...]:
    """The same for one that sees so much. `forms`: of the messages."""
    if policy is not None:
        messages = truncate(messages, policy, forms=forms)
    builder = _Builder(sight=sight)
    for message in messages:
        alone = forms.made(message, "model", _alone) if forms.has(message) else ()
        if alone:
            builder.add_made(alone)
        else:
            builder.add(message)
    made = builder.finish()
    return made if policy is None else keep_ends(made, policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedCall:
    """A call that was decided about after the conversation had gone on. `output`: its result, or the reason."""

    tool_name: str
    input: JSONValue
    is_approved: bool
    output: JSONValue


def decided_note(calls: Iterable[DecidedCall]) -> str:
    """The note about such calls for the model, as the user's last words. Never stored."""
    return "\n".join([DECIDED_TEXT, *map(_decided_line, calls)])


def _decided_line(call: DecidedCall) -> str:
    output = call.output if isinstance(call.output, str) else dump(call.output)
    output = output if len(output) <= MAX_NOTED_CHARS else f"{output[:MAX_NOTED_CHARS]} …"
    made = f"- {call.tool_name} {dump(call.input)[:MAX_NOTED_CHARS]}"
    if call.is_approved:
        return clean_text(f"{made}: approved. Its result: {output}")
    return clean_text(f"{made}: denied. {output or call_texts.DENIED}")


def with_last_calls(history: Sequence[Message], policy: ContextPolicy) -> list[Message]:
    """A history without the tool calls excluded by the policy; calls of the current answer are not affected.

    An answer that goes on after a decision or a result begins in the history.
    """
    if policy.keep_calls_of is None:
        return list(history)
    # Each message of the model's stands for one of ours at most, so the last ones come of no more than as many.
    filled = [message for message in history if message.get("parts")]
    last = filled[-policy.keep_calls_of :]
    tail = [message for message in to_model_messages(last, policy=None) if message != _GO_ON]
    kept = [item for message in tail[-policy.keep_calls_of :] for item in _call_ids(message)]
    going_on = filled[newest(filled, 1) :] if filled and filled[-1]["role"] == "assistant" else []
    kept += [call_id for message in going_on for part in message["parts"] if (call_id := _call_id(part))]
    return without_calls(history, set(kept))


def _call_ids(message: ModelMessage) -> list[str]:
    if isinstance(message, ToolMessage):
        return [message.call_id]
    return [item.call_id for item in message.content if isinstance(item, ToolCallContent)]


def with_checkpoint(messages: Sequence[ModelMessage]) -> tuple[ModelMessage, ...]:
    """The same messages, with a final user line if they end with the assistant's: for messages inserted by hooks."""
    if messages and not isinstance(messages[-1], AssistantMessage):
        return tuple(messages)
    return (*messages, UserMessage(content=(TextContent(text=GO_ON_TEXT if messages else NOTHING_TEXT),)))


def with_correction(messages: Sequence[ModelMessage], text: str) -> tuple[ModelMessage, ...]:
    """The messages with what the model reads about its last answer, which it gives anew and does not go on with."""
    said = messages[:-1] if goes_on(messages) else messages
    return (*said, UserMessage(content=(TextContent(text=text),)))


def goes_on(messages: Sequence[ModelMessage]) -> bool:
    """Whether a model is asked to go on with the answer that is the last of the history. There may be no more of it."""
    return len(messages) > 1 and messages[-1] == _GO_ON and isinstance(messages[-2], AssistantMessage)


@dataclass(slots=True, kw_only=True)
class _Builder:
    """The list under construction. `content` and `results` are the assistant's current step, not yet in the list."""

    sight: Sight
    made: list[ModelMessage] = field(default_factory=list)
    content: list[AssistantContent] = field(default_factory=list)
    results: list[ToolMessage] = field(default_factory=list)
    call_ids: set[str] = field(default_factory=set)
    repeats: dict[str, int] = field(default_factory=dict)  # how often a call id was met

    def add(self, message: Message) -> None:
        stored: Sequence[JSONValue] = message.get("parts") or []
        parts = cast("list[Part]", [part for part in stored if isinstance(part, dict)])
        if message.get("role") == "assistant":
            for part in parts:
                self._add_assistant_part(part)
            self._end_step()
        else:
            content = [content for part in parts for content in self._user_content(part)]
            note = sent_note(message) if content else ""
            self._extend_user([*content, TextContent(text=note)] if note else content)

    def add_made(self, message: UserMessage | AssistantMessage) -> None:
        """Add a message that was made by itself, to the last one if that is of the same side."""
        last = self.made[-1] if self.made else None
        if isinstance(last, UserMessage) and isinstance(message, UserMessage):
            self.made[-1] = UserMessage(content=(*last.content, *message.content))
        elif isinstance(last, AssistantMessage) and isinstance(message, AssistantMessage):
            self.made[-1] = AssistantMessage(content=(*last.content, *message.content))
        else:
            self.made.append(message)

    def finish(self) -> tuple[ModelMessage, ...]:
        if not self.made:
            self._extend_user([TextContent(text=NOTHING_TEXT)])
        if isinstance(self.made[0], AssistantMessage):
            self.made.insert(0, UserMessage(content=(TextContent(text=FIRST_TEXT),)))
        if isinstance(self.made[-1], AssistantMessage):
            self._extend_user([TextContent(text=GO_ON_TEXT)])
        return tuple(self.made)

    # The user's side

    def _extend_user(self, content: Sequence[UserContent]) -> None:
        """Add to the user's message that is last, so that roles alternate."""
        if not content:
            return
        last = self.made[-1] if self.made else None
        if isinstance(last, UserMessage):
            self.made.pop()
            content = [*last.content, *content]
        self.made.append(UserMessage(content=tuple(content)))

    def _user_content(self, part: Part) -> Iterable[UserContent]:
        if part.get("type") == "text":
            yield from _texts(part)
        elif part.get("type") == "file":
            yield self._file(part)

    def _file(self, part: Part) -> UserContent:
        loaded = self.sight.load_file(str(part.get("url") or ""))
        media_type = (loaded.media_type if loaded else "") or str(part.get("mediaType") or "unknown type")
        name = (loaded.filename if loaded else "") or str(part.get("filename") or "a file")
        title = clean_text(f'"{name}" ({kind_name(media_type)})')
        text = None if loaded is None else text_of(loaded)
        if not self.sight.sends_media and text is None and not is_text_type(media_type):
            return TextContent(text=clean_text(f"[Attached {media_type}: {name}]"))
        if loaded is None:
            return TextContent(text=f"[The user attached {title}. It is no longer available.]")
        if loaded.data and self.sight.sends_media and self.sight.sees(media_type):
            return loaded
        if text is not None:
            return TextContent(text=clean_text(f"[The user attached {title}{_encoding_of(loaded)}:]\n{text}"))
        if not loaded.data and (self.sight.sees(media_type) or is_text_type(media_type)):
            return TextContent(text=f"[The user attached {title}. It is not sent: this request has too many files.]")
        return TextContent(text=f"[The user attached {title}. You cannot see its content.]")

    # The assistant's side

    def _add_assistant_part(self, part: Part) -> None:
        kind = part.get("type")
        if kind == "step-start":
            self._end_step()
        elif kind == "text":
            self.content.extend(_texts(part))
        elif kind == "reasoning":
            self.content.extend(_reasoning(part))
        elif (said := steered(part)) is not None:
            self._end_step()
            self.add(said)
        elif kind == "file":
            name, media_type = part.get("filename") or "a file", part.get("mediaType") or "unknown type"
            self.content.append(TextContent(text=clean_text(f'[You made "{name}" ({media_type}).]')))
        elif tool_name(part) and isinstance(part.get("toolCallId"), str) and isinstance(part.get("state"), str):
            self._add_call(part)

    def _add_call(self, part: Part) -> None:
        call_id = self._unused_id(part["toolCallId"])
        name = _safe_name(tool_name(part))
        call_input = to_input_object(_said_input(part))
        if _is_wrapped(part):  # the model is sent its call as it made it
            name, call_input = CALL, {"name": name, "arguments": call_input}
        metadata = _of_provider(part.get("callProviderMetadata"))
        self.content.append(
            ToolCallContent(call_id=call_id, tool_name=name, input=call_input, provider_metadata=metadata)
        )
        output, is_error = _result(part)
        if _is_edited(part):
            output = _with_edit(part, output)
        files, lines = files_of(part, self.sight)
        note = cut_note(part)
        output = with_lines(output, [clean_text(line) for line in (*lines, *([note] if note else []))])
        self.results.append(ToolMessage(call_id=call_id, tool_name=name, output=output, is_error=is_error, files=files))

    def _unused_id(self, call_id: str) -> str:
        """Give a call an id that no other call of the request has; weak models repeat theirs."""
        call_id = unused = clean_text(call_id) or "call"
        while unused in self.call_ids:
            self.repeats[call_id] = self.repeats.get(call_id, 1) + 1
            unused = f"{call_id}-{self.repeats[call_id]}"
        self.call_ids.add(unused)
        return unused

    def _end_step(self) -> None:
        while self.content and isinstance(self.content[-1], ReasoningContent):
            self.content.pop()  # reasoning that led to nothing is refused by the providers that want reasoning back
        if self.content:
            last = self.made[-1] if self.made else None
            if isinstance(last, AssistantMessage):
                self.made.pop()
                self.content = [*last.content, *self.content]
            self.made.append(AssistantMessage(content=tuple(self.content)))
            self.made.extend(self.results)
        self.content, self.results = [], []


def _alone(message: Message) -> UserMessage | AssistantMessage | tuple[()]:
    """The one message that is made of a message of texts whatever stands beside it; nothing for any other."""
    if any(part.get("type") not in _ALONE for part in message["parts"]):
        return ()
    builder = _Builder(sight=Sight(accepts_images=False, accepts_documents=False, load_file=lambda _url: None))
    builder.add(message)
    made = builder.made
    return made[0] if len(made) == 1 and isinstance(made[0], UserMessage | AssistantMessage) else ()


def clean_text(text: str) -> str:
    """Replace lone surrogates, which no provider's encoding can carry."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _texts(part: Part) -> Iterable[TextContent]:
    text = part.get("text")
    if isinstance(text, str) and text.strip():
        metadata = _of_provider(part.get("providerMetadata")) if part.get("state") != "streaming" else {}
        yield TextContent(text=clean_text(text), provider_metadata=metadata)


def _of_provider(given: JSONValue) -> JSONObject:
    """The data that a provider gave with a part, without our own."""
    return {key: value for key, value in given.items() if key != OURS} if isinstance(given, dict) else {}


def _is_wrapped(part: Part) -> bool:
    """Whether the model made a call through `call_tool`."""
    metadata: JSONValue = part.get("callProviderMetadata")
    ours = metadata.get(OURS) if isinstance(metadata, dict) else None
    return isinstance(ours, dict) and ours.get(CALLED_BY) == CALL


def _reasoning(part: Part) -> Iterable[ReasoningContent]:
    """Reasoning with the provider's data; what was cut in the middle has none, and is left out."""
    metadata = _of_provider(part.get("providerMetadata"))
    if metadata and part.get("state") != "streaming":
        yield ReasoningContent(text=clean_text(str(part.get("text") or "")), provider_metadata=metadata)


def _is_edited(part: Part) -> bool:
    approval: JSONValue = part.get("approval")
    return isinstance(approval, dict) and approval.get("edited") is True and "originalInput" in approval


def _said_input(part: Part) -> JSONValue:
    """The arguments as the model wrote them, also where a person has changed them since."""
    if _is_edited(part):
        return part["approval"]["originalInput"]
    return part["input"] if part.get("input") is not None else part.get("rawInput")


def _with_edit(part: Part, output: JSONValue) -> JSONValue:
    """A result, with the arguments that the person had the call run with."""
    note = f"{EDITED_TEXT} {dump(part.get('input'))}"
    return clean_text(f"{note}\n{output}") if isinstance(output, str) else {"note": clean_text(note), "output": output}


def _result(part: Part) -> tuple[JSONValue, bool]:
    approval = part.get("approval")
    is_denied = isinstance(approval, dict) and approval.get("approved") is False
    match part["state"]:
        case ToolState.OUTPUT_AVAILABLE:
            output = part.get("output")
            return (clean_text(output) if isinstance(output, str) else output), False
        case ToolState.OUTPUT_ERROR:
            return clean_text(str(part.get("errorText") or call_texts.INTERRUPTED)), True
        case ToolState.OUTPUT_DENIED:
            return _denial(approval), True
        case ToolState.APPROVAL_REQUESTED if is_lasting(part):
            return WAITING_TEXT, False
        case ToolState.APPROVAL_RESPONDED:
            return (_denial(approval) if is_denied else call_texts.NOT_RUN), True
        case _:
            return call_texts.INTERRUPTED, True


def _denial(approval: JSONValue) -> str:
    reason = approval.get("reason") if isinstance(approval, dict) else None
    return clean_text(reason) if isinstance(reason, str) and reason.strip() else call_texts.DENIED


def _call_id(part: object) -> str:
    """The id of a part's call; empty for other parts, and for what was imported and is no part."""
    found = part.get("toolCallId") if isinstance(part, dict) else None
    return found if isinstance(found, str) else ""


def _safe_name(name: str) -> str:
    """Keep to the characters that providers allow: a model may have called a tool that never existed."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64]


_TEXT_TYPES: Final = frozenset(
    {"application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml"}
)


def text_of(file: FileContent) -> str | None:
    """The text of a file, for models that do not take the file itself; bytes that are written in it are named."""
    if file.text is not None:
        return file.text
    return without_data(shown_text(file.data)[0]) if file.data and is_text_type(file.media_type) else None


def _encoding_of(file: FileContent) -> str:
    """The encoding of a file of text for the line above it, where it is not UTF-8."""
    found = detected(file.data) if file.data and is_text_type(file.media_type) else None
    return "" if found is None or found.is_plain else f", in {found.description}"


def is_text_type(media_type: str) -> bool:
    """Whether files of this type are sent as text."""
    kind = media_type.partition(";")[0].strip().lower()
    return kind.startswith("text/") or kind in _TEXT_TYPES or kind.endswith(("+json", "+xml"))
