"""A table of the words by which servers say that a request is larger than the model, and the limit that they name.

Each row has words that a server really used, and where they are to be found; its pattern is a little wider than they
are. What only resembles an overflow (a rate of tokens, a quota, a parameter or a single value that is too long) comes
first: `NEAR_MISSES`. Pure.
"""

import re
from typing import Final

from chat.llm.adapters.overflow_others import OTHERS, Row

_GH: Final = "https://github.com/"

ROWS: Final[tuple[Row, ...]] = (
    Row(
        "OpenAI",
        r"maximum (?:context|prompt) (?:length|size|window)|max(?:imum)? context (?:length|size|window)",
        "This model's maximum context length is 4097 tokens. However, your messages resulted in 13393 tokens. Please "
        "reduce the length of the messages.",
        400,
        _GH + "mckaywrigley/repo-chat/issues/15",
    ),
    Row(
        "OpenAI (code)",
        r"context[_ ](?:length|window|size)[_ ]?exceeded|exceed_context_size|model_context_window_exceeded",
        "context_length_exceeded",
        0,
        _GH + "chathub-dev/chathub/issues/126",
    ),
    Row(
        "OpenAI (Responses)",
        r"exceeds? (?:the |this )?(?:available |allowed |model(?:'s)? )?(?:maximum )?context "
        r"(?:window|length|size|limit)",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        400,
        _GH + "badlogic/pi-mono (packages/ai/src/utils/overflow.ts)",
    ),
    Row(
        "OpenAI (one string)",
        r"(?:messages|input|instructions|prompt)[^'\"]{0,80}(?<!id)['\"]: string too long",
        "Invalid 'messages[17].content': string too long. Expected a string with maximum length 1048576, but got a "
        "string with length 1744259 instead.",
        400,
        _GH + "gptscript-ai/clio/issues/41",
    ),
    Row(
        "OpenAI (per minute)",
        r"request too large for .{0,80}tokens per min",
        "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 40000.",
        429,
        "https://platform.openai.com/docs/guides/rate-limits",
    ),
    Row(
        "Azure",
        r"input tokens exceed (?:the )?configured limit",
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 509178 tokens. Please "
        "reduce the length of the messages.",
        400,
        _GH + "BerriAI/litellm (tests of exception mapping)",
    ),
    Row(
        "Anthropic",
        r"prompt (?:is )?too long|input is too long",
        "prompt is too long: 213462 tokens > 200000 maximum",
        400,
        "https://docs.anthropic.com/en/docs/build-with-claude/context-windows",
    ),
    Row(
        "Anthropic (with the answer)",
        r"input length and .?max_tokens.? exceed",
        "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or "
        "`max_tokens` and try again",
        400,
        _GH + "docker/docker-agent/issues/569",
    ),
    Row(
        "Anthropic (size)",
        r"request_too_large|request exceeds the maximum size|request entity too large|payload too large",
        "Request exceeds the maximum size",
        413,
        "https://docs.anthropic.com/en/api/errors",
    ),
    Row(
        "Bedrock",
        r"input is too long for requested model",
        "Input is too long for requested model.",
        400,
        "https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html",
    ),
    Row(
        "Bedrock (payload)",
        r"exceed(?:s|ed)? (?:the )?context (?:limit|length|window|size)",
        "The request payload size has exceed context limit.",
        400,
        _GH + "BerriAI/litellm (tests of exception mapping)",
    ),
    Row(
        "Bedrock (Titan)",
        r"too many input tokens\. max input tokens",
        "Too many input tokens. Max input tokens: 8192, request input token count: 9279",
        400,
        _GH + "pkdone/paul-genai-test-tools-ts (error patterns)",
    ),
    Row(
        "Gemini",
        r"(?:input )?token count.{0,60}exceeds the maximum|exceeds the maximum number of (?:input )?tokens",
        "The input token count (314175) exceeds the maximum number of tokens allowed (131072).",
        400,
        _GH + "google-gemini/gemini-cli/issues/12098",
    ),
    Row(
        "Vertex",
        r"unable to submit request because the input token count|the input token count is \d+ but model only supports",
        "Unable to submit request because the input token count is 48261 but model only supports up to 32768. Reduce "
        "the input token count and try again. You can also use the CountTokens API to calculate prompt token count",
        400,
        "https://cloud.google.com/vertex-ai/generative-ai/docs (reports of users)",
    ),
    Row(
        "xAI",
        r"maximum prompt length is \d+",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        400,
        _GH + "badlogic/pi-mono (packages/ai/src/utils/overflow.ts)",
    ),
    Row(
        "Groq",
        r"reduce the length of (?:the |your )?(?:messages|prompt|input)|reduce your (?:prompt|message size|input)\b",
        "Please reduce the length of the messages or completion.",
        400,
        "https://console.groq.com/docs/errors",
    ),
    Row(
        "Groq (size)",
        r"request too large for model",
        "Request too large for model `llama-3.3-70b-versatile`: please reduce your message size and try again.",
        413,
        "https://console.groq.com/docs/errors",
    ),
    Row(
        "Cerebras",
        r"current length is \d+ while limit is",
        "Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000",
        400,
        _GH + "cline/cline/issues/5140",
    ),
    Row(
        "Mistral",
        r"too large for model with \d+ maximum context",
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        400,
        "https://docs.mistral.ai/api/",
    ),
    Row(
        "vLLM",
        r"longer than the (?:maximum )?model'?s? (?:context )?length|maximum model length",
        "The decoder prompt (length 163840) is longer than the maximum model length of 131072. Make sure that "
        "`max_model_len` is no smaller than the number of text tokens plus multimodal tokens.",
        400,
        _GH + "thu-coai/Glyph/issues/9",
    ),
    Row(
        "vLLM (earlier)",
        r"too long to fit into the model",
        "The prompt (total length 25938) is too long to fit into the model (context length 4096).",
        400,
        _GH + "vllm-project/vllm/issues/12165",
    ),
    Row(
        "SGLang",
        r"is longer than the model'?s (?:maximum )?context|token count exceeds the model'?s maximum context",
        "The input (210000 tokens) is longer than the model's context length (200000 tokens).",
        400,
        _GH + "sgl-project/sglang (tokenizer manager)",
    ),
    Row(
        "SGLang (allowed)",
        r"tokens?\)? exceeds? (?:the )?maximum allowed (?:input )?length|maximum allowed input length of [\d,]+ token",
        "Input length (210000 tokens) exceeds the maximum allowed length (200000 tokens).",
        400,
        _GH + "sgl-project/sglang (tokenizer manager)",
    ),
    Row(
        "llama.cpp",
        r"exceeds? the available context size|exceed_context_size_error",
        "the request exceeds the available context size. try increasing the context size or enable context shift",
        500,
        _GH + "ggml-org/llama.cpp/pull/15780",
    ),
    Row(
        "llama.cpp (while it answers)",
        r"context size has been exceeded|input is larger than the max context size|too big compared to kv size",
        "Context size has been exceeded.",
        500,
        _GH + "ggml-org/llama.cpp/pull/10030",
    ),
    Row(
        "llama.cpp (batch)",
        r"input is too large to process",
        "input is too large to process. increase the physical batch size",
        500,
        _GH + "ggml-org/llama.cpp/issues/12295",
    ),
    Row(
        "LM Studio",
        r"greater than the context length|when context the overflows|context (?:length )?(?:has )?overflow",
        "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context "
        "length of only 4096 tokens, which is not enough. Try to load the model with a larger context length",
        400,
        _GH + "lmstudio-ai/lmstudio-bug-tracker (issues on context overflow)",
    ),
    Row(
        "LM Studio (prompt)",
        r"tokens to keep from the initial prompt is greater|reached context length of \d+",
        "The number of tokens to keep from the initial prompt is greater than the context length",
        400,
        _GH + "franksec42/LmStudioToCursor",
    ),
    Row(
        "Ollama",
        r"prompt too long; exceeded|exceeded (?:the )?(?:max )?context length",
        "prompt too long; exceeded max context length by 4 tokens",
        400,
        _GH + "ollama/ollama (runner)",
    ),
    Row(
        "Ollama (input)",
        r"input (?:length )?exceeds (?:the )?(?:maximum )?context length",
        "the input length exceeds the context length",
        400,
        _GH + "ollama/ollama (embeddings)",
    ),
    Row(
        "Ollama (cut away)",
        r"no user query found in messages",
        "no user query found in messages",
        500,
        _GH + "ollama/ollama/issues/18107",
    ),
    Row(
        "TGI",
        r"inputs.? tokens \+ .?max_new_tokens.? must be|.?inputs.? must have less than \d+ tokens",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 6204 `inputs` tokens and "
        "2047 `max_new_tokens`",
        422,
        _GH + "huggingface/chat-ui/issues/1149",
    ),
    Row(
        "TGI (input)",
        r"must have less than \d+ tokens",
        "Input validation error: `inputs` must have less than 2048 tokens. Given: 2222",
        422,
        _GH + "h2oai/h2ogpt/issues/373",
    ),
    Row(
        "Together",
        r"tokens \+ .?max_new_tokens",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 2019 `inputs` tokens and "
        "30 `max_new_tokens`",
        400,
        _GH + "stanford-crfm/helm/pull/2079",
    ),
    Row(
        "Cohere",
        r"too many tokens: |total number of tokens.{0,40}cannot exceed",
        "too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048 - received 6354. Try using "
        "a shorter prompt or a smaller max_tokens value.",
        400,
        _GH + "cohere-ai/sandbox-topically/issues/4",
    ),
    Row(
        "Cohere (limit)",
        r"too many tokens: size limit exceeded",
        "too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs, or setting "
        "prompt_truncation='AUTO'.",
        400,
        "https://docs.cohere.com/reference/errors",
    ),
    Row(
        "Copilot",
        r"prompt token count of \d+ exceeds|model_max_prompt_tokens_exceeded",
        "prompt token count of 138898 exceeds the limit of 64000",
        400,
        _GH + "microsoft/copilot-intellij-feedback/issues/94",
    ),
    Row(
        "GLM",
        r"prompt exceeds (?:the )?max(?:imum)? (?:context )?length|exceeds max length",
        "Prompt exceeds max length",
        400,
        _GH + "zeroclaw-labs/zeroclaw/issues/4124",
    ),
    Row(
        "DashScope",
        r"range of input length should be",
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]",
        400,
        "https://www.alibabacloud.com/help/en/model-studio/error-code",
    ),
    Row(
        "Moonshot",
        r"exceeded model token limit|input token length too long|model max length exceeded",
        "Invalid request: Your request exceeded model token limit: 131072 (requested: 140000)",
        400,
        "https://platform.moonshot.ai/docs/api/chat (errors)",
    ),
    Row(
        "Moonshot (earlier)",
        r"model max length exceeded",
        "model max length exceeded, max length:8192",
        400,
        _GH + "MoonshotAI/MoonshotAI-Cookbook/issues/18",
    ),
    Row(
        "MiniMax",
        r"context window exceeds|status_msg\W+token limit",
        "invalid params, context window exceeds limit (2013)",
        400,
        _GH + "badlogic/pi-mono (packages/ai/src/utils/overflow.ts)",
    ),
    Row(
        "Volcengine",
        r"exceed(?:s|ed)? (?:the )?max(?:imum)? message tokens|total tokens of .{0,40}exceed",
        "Total tokens of image and text exceed max message tokens. Request id: 0217",
        400,
        "https://www.volcengine.com/docs/82379 (table of errors, reports of users)",
    ),
    Row(
        "Qianfan",
        r"(?:prompt|input|message|request)s? tokens? (?:is |are )?too (?:long|large|many)|the max input characters is",
        "Prompt tokens too long",
        400,
        "https://cloud.baidu.com/doc/qianfan (table of errors, tokens_too_long)",
    ),
    Row(
        "Fireworks",
        r"prompt is too long|model maximum context length",
        "The prompt is too long: 1200012, model maximum context length: 1048573",
        400,
        _GH + "anomalyco/models.dev/pull/6508",
    ),
    Row(
        "OpenRouter",
        r"endpoint'?s maximum context length|middle-out",
        "This endpoint's maximum context length is 32768 tokens. However, you requested about 40960 tokens (40900 of "
        'text input, 60 of tool input). Please reduce the length of either one, or use the "middle-out" transform.',
        400,
        "https://openrouter.ai/docs/features/message-transforms",
    ),
    Row(
        "LiteLLM",
        r"contextwindowexceeded|model'?s maximum context limit|context window exceeded",
        "litellm.ContextWindowExceededError: litellm.BadRequestError: The input exceeds the model's maximum context "
        "limit of 8192 tokens.",
        400,
        "https://docs.litellm.ai/docs/exception_mapping",
    ),
    Row(
        "Snowflake",
        r"max tokens of \d+ exceeded",
        "max tokens of 200000 exceeded",
        400,
        _GH + "posit-dev/positron/issues/11737",
    ),
    Row(
        "OpenAI (vectors)",
        r"maximum input length is .{0,40}tokens|input length of \d+ exceeds|prompt length .{0,20}exceeds",
        "Invalid input: maximum input length is 8192 tokens.",
        400,
        _GH + "BerriAI/litellm (exception mapping)",
    ),
    Row(
        "watsonx",
        r"cannot exceed the total tokens limit|token_quantity_exceeded",
        "Invalid input argument for Model 'meta-llama/llama-2-70b-chat': the number of input tokens 4098 cannot exceed "
        "the total tokens limit 4096 for this model",
        400,
        "https://cloud.ibm.com/apidocs/watsonx-ai (reports of users)",
    ),
    Row(
        "ds4",
        r"the configured context size is",
        "Prompt has 32769 tokens, but the configured context size is 32768 tokens",
        400,
        _GH + "antirez/ds4",
    ),
    Row(
        "MLX",
        r"prompt exceeds (?:the )?(?:maximum )?(?:context|model)",
        "Prompt exceeds maximum context length",
        400,
        _GH + "ddalcu/mlx-serve/issues/66",
    ),
    Row(
        "llama-cpp-python",
        r"requested tokens \(\d+\) exceed context window",
        "Requested tokens (2055) exceed context window of 2048",
        500,
        _GH + "abetlen/llama-cpp-python/pull/385",
    ),
    *OTHERS,
    Row(
        "any",
        r"\b(?:prompt|conversation|context|messages|input|history)\b.{0,30}\bis too (?:long|large) for (?:the|this) "
        r"model"
        r"|tokens? (?:limit )?exceeds? (?:the )?(?:model|context)"
        r"|exceeds? (?:the )?(?:model'?s? )?(?:maximum )?(?:context|token|input) (?:limit|length|window)",
        "Request tokens exceed the model token limit",
        400,
        "words of several gateways",
    ),
)

NEAR_MISSES: Final = re.compile(
    r"rate[ _-]?limit|too many requests|throttl|please wait|quota|\bper[ _-]?(?:minute|min|hour|day|month|second)\b"
    r"|requests per|daily|monthly|deadline exceeded|maximum allowed number of output tokens|image exceeds"
    r"|too many images|exceeds \d+ ?(?:MB|KB)|array too long"
    r"|(?:\.id|\.name|\.description|user|metadata)[^'\"]{0,80}['\"]: string too long"
    r"|budget_tokens|range of max_tokens|max_tokens.? is too large|invalid max_tokens",
    re.IGNORECASE,
)
"""Words that speak of tokens, lengths and limits, and not of the size of the model."""

_OVERFLOW: Final = re.compile("|".join(row.pattern for row in ROWS), re.IGNORECASE)
_ALWAYS: Final = re.compile(
    r"request too large for .{0,80}tokens per min|maximum context length is \d+|prompt is too long", re.IGNORECASE
)
_LIMIT: Final = re.compile(
    r"(?:maximum (?:context|prompt|model|allowed|input)? ?(?:length|limit)|context (?:length|limit|window)|context size"
    r"|token limit|configured limit|tokens limit|allowed length|number of tokens allowed|exceeds the limit"
    r"|while limit|supports up|max length|max tokens|max input tokens|loaded with context length)"
    r" ?(?:is|of|to|:)?(?: only)? ?[(\[]?(\d[\d,]{2,9})\b(?! ?\+)"
    r"|must be <= (\d{3,9})|less than (\d{3,9}) tokens|cannot exceed (\d{3,9})|> (\d{3,9}) maximum"
    r"|with (\d{3,9}) maximum context|n_ctx\W+(\d{3,9})|should be \[1, ?(\d{3,9})\]|context size \((\d{3,9})"
    r"|max tokens of (\d{3,9}) exceeded|context limit: \d+ \+ \d+ > (\d{3,9})|max size: (\d{3,9}) tokens"
    r"|sequence length is just (\d{3,9})|input length limit (\d{3,9})|exceeds limit of (\d{3,9})"
    r"|maximum (?:input|sequence) length \((\d{3,9})|max (\d{3,9}) tokens per request",
    re.IGNORECASE,
)


def is_overflow(text: str) -> bool:
    """Whether words say that a request is larger than the model."""
    if _ALWAYS.search(text):
        return True
    return _OVERFLOW.search(text) is not None and NEAR_MISSES.search(text) is None


def named_limit(text: str) -> int:
    """Tokens that a server says its model takes, in the words of an overflow; 0 where it names none."""
    if not is_overflow(text) or re.search(r"tokens per min|string too long", text, re.IGNORECASE):
        return 0
    match = _LIMIT.search(text)
    found = next((group for group in match.groups() if group), "") if match else ""
    return int(found.replace(",", "")) if found else 0
