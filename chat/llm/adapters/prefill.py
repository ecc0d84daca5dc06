"""Providers that go on within a text: an answer that was cut is the last message of the request, and goes on in it.

Elsewhere a model is asked to go on in a message of the user's. A provider that refuses it after all is remembered
(`demands.py`), and is asked like the others. Pure.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from chat.core.model.language_model import ModelRequest
from chat.llm.endpoint import Endpoint
from chat.llm.model_memory import Learned
from thinkproject.kernel.jsonvalue import JSONObject

NO_PREFILL: Final = "no prefill"
"""The demand of a model that does not go on within a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillWay:
    """A provider's way of continuing a text.

    `place`: of its address; `server`: as it calls itself, or the provider's name;
    `message`: fields of the last message; `body`: of the request; `models`: to which it applies; `echoes`: its answers
    begin with the text; `source`: its own page.
    """

    source: str
    place: str = ""
    server: str = ""
    message: JSONObject = field(default_factory=dict)
    body: JSONObject = field(default_factory=dict)
    models: str = ""
    echoes: bool = False

    def applies(self, endpoint: Endpoint, model: str, server: str) -> bool:
        """Whether it is the way of this model at this address."""
        is_there = bool(self.place) and re.search(self.place, endpoint.base_url) is not None
        is_server = bool(self.server) and self.server in (endpoint.provider, server)
        return (is_there or is_server) and re.search(self.models, model) is not None


_OPEN_END: Final[JSONObject] = {"continue_final_message": True, "add_generation_prompt": False}

WAYS: Final = (
    PrefillWay(
        place=r"//api\.mistral\.ai(?:[/:]|$)",
        server="mistral",
        message={"prefix": True},
        echoes=True,
        source="https://docs.mistral.ai/api/#tag/chat: AssistantMessage.prefix",
    ),
    PrefillWay(
        place=r"//api\.deepseek\.com/beta(?:/|$)",
        message={"prefix": True},
        source="https://api-docs.deepseek.com/guides/chat_prefix_completion",
    ),
    PrefillWay(
        place=r"//api\.moonshot\.(?:ai|cn)(?:[/:]|$)",
        message={"partial": True},
        source="https://platform.kimi.ai/docs/guide/use-partial-mode-feature-of-kimi-api",
    ),
    PrefillWay(
        place=r"//dashscope[\w-]*\.aliyuncs\.com(?:[/:]|$)",
        message={"partial": True},
        source="https://www.alibabacloud.com/help/en/model-studio/partial-mode",
    ),
    PrefillWay(
        place=r"//api\.anthropic\.com(?:[/:]|$)",
        models=r"claude-(?:[123]|instant|(?:opus|sonnet|haiku)-4-(?:[015]|2025\d{4}))(?:\D|$)",
        source="https://platform.claude.com/docs/en/build-with-claude/prompt-engineering/prefill-claudes-response; "
        "not since 4.6: https://platform.claude.com/docs/en/about-claude/models/whats-new-claude-4-6",
    ),
    PrefillWay(place=r"//api\.groq\.com(?:[/:]|$)", source="https://console.groq.com/docs/prefilling"),
    PrefillWay(
        server="vllm",
        body=_OPEN_END,
        source="https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html: extra parameters of chat",
    ),
    PrefillWay(
        server="llamacpp", source="https://github.com/ggml-org/llama.cpp/pull/13608: the default of llama-server"
    ),
)
"""One row for each provider whose own pages describe it. Others are not asked: a model that takes the text for a
whole answer goes on behind it."""


def way_of(endpoint: Endpoint, model: str, known: Learned) -> PrefillWay | None:
    """The way of a model; nothing where none is known."""
    return next((way for way in WAYS if way.applies(endpoint, model, known.server)), None)


def prefilled(body: JSONObject, request: ModelRequest, way: PrefillWay | None, known: Learned) -> JSONObject:
    """The body that ends with the text that was cut, where the provider goes on in it; else the body as it is.

    A model that has refused it is not asked again. White space at the end of the text is left to the model: some
    providers refuse it, and it splits what models read as one. With a schema, an answer of JSON begins anew.
    """
    messages: list[JSONObject] = body["messages"]
    if way is None or request.cut_word is None or NO_PREFILL in known.demands:
        return body
    if "response_format" in body or len(messages) < 2:
        return body
    *before, answer, _ = messages
    text = answer["content"]
    if answer["role"] != "assistant" or "tool_calls" in answer or not isinstance(text, str):
        return body
    whole = {**answer, "content": (text + request.cut_word).rstrip(), **way.message}
    return {**body, "messages": [*before, whole], **way.body}


def is_prefilled(body: JSONObject) -> bool:
    """Whether a body ends with a text that is to go on."""
    messages = body.get("messages") or [{}]
    return bool(messages[-1].get("role") == "assistant")
