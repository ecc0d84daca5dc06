"""Words of servers about sizes: those that mean "larger than the model", and those that only sound like it."""

import pytest

from chat.errors import ContextOverflow
from chat.llm.adapters.overflow_words import named_limit
from chat.llm.adapters.provider_errors import Failure, classify

_GH = "https://github.com/"
# Status, words, and where they were met; beyond the rows of the table, which have a test of their own.
OVERFLOWS = [
    (
        400,
        (
            "This model's maximum context length is 4097 tokens, however you requested 4130 tokens (130 in "
            "your prompt; 4000 for the completion). Please reduce your prompt; or completion length."
        ),
        _GH + "jabrena/spring-boot-user-beans/issues/136",
    ),
    (
        400,
        (
            "This model's maximum context length is 3 tokens. However, your request has 8 input tokens. "
            "Please reduce the length of the input messages. (parameter=input_tokens, value=8)"
        ),
        _GH + "vllm-project/vllm/pull/33425",
    ),
    (
        400,
        (
            "This model's maximum context length is 2048 tokens. However, your request has 8 input tokens "
            "plus 2045 'max_tokens'. Please reduce one or the other."
        ),
        _GH + "vllm-project/vllm/pull/33425",
    ),
    (
        400,
        (
            "This model's maximum context length is 262144 tokens. However, you requested 128000 output "
            "tokens and your prompt contains at least 134145 input tokens, for a total of at least 262145 "
            "tokens."
        ),
        _GH + "AIDotNet/OpenCowork/issues/82",
    ),
    (
        400,
        (
            "AiError: This model's maximum context length is 131072 tokens. However, you requested 16000 "
            "output tokens and your prompt contains at least 115073 input tokens"
        ),
        _GH + "cloudflare/cloudflare-docs/issues/29731",
    ),
    (400, "max_tokens must be at least 1, got -186.", _GH + "vllm-project/vllm/issues/4667"),
    (400, "Input prompt (2664 tokens) is too long and exceeds limit of 2048", _GH + "vllm-project/vllm/issues/525"),
    (
        400,
        (
            "Requested token count exceeds the model's maximum context length of 256000 tokens. You "
            "requested a total of 256878 tokens"
        ),
        _GH + "anomalyco/models.dev/pull/4422",
    ),
    (
        400,
        "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
        _GH + "QwenLM/Qwen3/issues/1321",
    ),
    (
        500,
        "Encountered an error when fetching new request: Prompt length (200) exceeds maximum input length (1)",
        _GH + "triton-inference-server/tensorrtllm_backend/issues/565",
    ),
    (
        500,
        "Cannot process new request: Prompt length (5056) exceeds maximum sequence length (2048)",
        _GH + "triton-inference-server/tensorrtllm_backend/issues/141",
    ),
    (
        400,
        "Request prompt has 38726 tokens in total, larger than the model input length limit 8192.",
        _GH + "mlc-ai/mlc-llm/issues/2692",
    ),
    (
        400,
        "Your input is too long. Max input length is 4096 tokens, but you supplied 5441 tokens.",
        _GH + "run-llama/llama_index/issues/7974",
    ),
    (413, "Request body too large for gpt-4o model. Max size: 8000 tokens.", _GH + "cline/cline/issues/2115"),
    (
        400,
        (
            '{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o model. Max '
            'size: 8000 tokens."}}'
        ),
        _GH + "eslint/tsc-meetings/pull/593",
    ),
    (
        400,
        (
            "Requested generation length 1 is not possible! The provided prompt is 4309 tokens long, so "
            "generating 1 tokens requires a sequence length of 4310, but the maximum supported sequence "
            "length is just 4096!"
        ),
        _GH + "cline/cline/issues/294",
    ),
    (400, "Prompt tokens (9000) exceeds context size (8192)", _GH + "antirez/ds4/pull/150"),
    (
        400,
        (
            '{"type":"error","error":{"message":"API 调用参数有误，请检查文档。Request 182387 input tokens exceeds the '
            'model\'s maximum context length 202750","code":"1210"}}'
        ),
        _GH + "foreveryh/claude-code-switch/issues/12",
    ),
    (400, "{'code': '1261', 'message': 'Prompt exceeds max length'}", _GH + "mangowhoiscloud/geode/pull/668"),
    (
        500,
        "Number of tokens (757) exceeded maximum context length (512).",
        _GH + "AIAnytime/ChatCSV-Llama2-Chatbot/issues/2",
    ),
    (
        500,
        "ERROR: The prompt size exceeds the context window size and cannot be processed.",
        _GH + "nomic-ai/gpt4all/issues/664",
    ),
    (400, "ValidationException: The input is too long", _GH + "openclaw/openclaw/issues/58839"),
    (400, "ValidationException: Input exceeds the max input token limit", _GH + "openclaw/openclaw/issues/58839"),
    (400, "ollama: context length exceeded for llama3", _GH + "openclaw/openclaw/issues/58839"),
    (400, "total tokens exceeds the model's max of 4096", _GH + "openclaw/openclaw/issues/58839"),
    (400, "input is too long for model gpt-5.4", _GH + "openclaw/openclaw/issues/58839"),
    (
        400,
        "request (35999 tokens) exceeds the available context size (32768 tokens), try increasing it",
        _GH + "chflame163/ComfyUI_Qwen_H3_Prompt/issues/5",
    ),
    (
        400,
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]",
        _GH + "langgenius/dify/issues/14986",
    ),
    (
        400,
        "The input token count exceeds the maximum number of tokens allowed (1048576).",
        _GH + "arkavo-org/arkavo-edge/issues/371",
    ),
    (
        400,
        (
            '{"error":{"code":400,"message":"{\\"type\\":\\"error\\",\\"error\\":{\\"message\\":\\"prompt is too long: '
            '200997 tokens \\u003e 200000 maximum\\"}}","status":"INVALID_ARGUMENT"}}'
        ),
        _GH + "lbjlaq/Antigravity-Manager/issues/2246",
    ),
    (
        400,
        (
            "This endpoint's maximum context length is 16384 tokens. However, you requested about 94307 "
            "tokens (94307 of text input)."
        ),
        _GH + "topoteretes/cognee/issues/1061",
    ),
    (
        400,
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32768. Given: 33717 "
            "`inputs` tokens and 256 `max_new_tokens`"
        ),
        "https://huggingface.co/CohereForAI/c4ai-command-r-plus/discussions/43",
    ),
    (
        400,
        "Input validation error: `inputs` must have less than 1024 tokens. Given: 1244",
        _GH + "stanford-crfm/helm/issues/1820",
    ),
    (
        400,
        "Input too long. Received 7226 tokens, but the maximum input length is 4096 tokens.",
        "https://portkey.ai/error-library/input-length-error-10000",
    ),
    (413, "Token Limit Exceeded token_limit_exceeded", "https://developers.glean.com/errors/token-limit-exceeded"),
    (
        400,
        "'$.messages' is too long. Maximum length is 2048, but got 4970 items.",
        "https://portkey.ai/error-library/length-limit-error-10027",
    ),
    (400, "Requested 319487 tokens, max 300000 tokens per request", _GH + "ridgesai/ridges-old/pull/75"),
    (
        500,
        "RuntimeError: start (958) + length (1624) exceeds dimension size (2048).",
        _GH + "henk717/KoboldAI/issues/463",
    ),
    (400, "Input length 1624 exceeds maximum allowed token size 512", _GH + "run-llama/llama_index/issues/15180"),
    (400, "request size exceeds model context window", _GH + "None9527/NGOClaw"),
    (
        429,
        (
            "Request too large for gpt-4o in organization org-zQ on tokens per min (TPM): Limit 30000, "
            "Requested 132819. The input or output tokens must be reduced in order to run successfully."
        ),
        _GH + "fork-dev/TrackerWin/issues/2595",
    ),
    (400, "token数量超过上限。对话历史+问题的字数太多，需要精简输入", "https://www.xfyun.cn/doc/spark/ (code 10907)"),
    (400, "Prompt 超长", "https://docs.bigmodel.cn (code 1261)"),
    (
        400,
        (
            "Query or prefix prompt is too long, you can reduce the prefix prompt, or shrink the max token, "
            "or switch to a llm with a larger token limit size"
        ),
        _GH + "langgenius/dify/issues/1435",
    ),
    (
        400,
        (
            "The request exceeds the model's maximum context length. Please reduce the length of the "
            "messages or completion."
        ),
        "https://portkey.ai/error-library/context-length-error-10012",
    ),
]
NONE = [
    (400, "The maximum tokens you requested exceeds the model limit of 32768"),
    (400, "max_tokens (10000) cannot exceed 8192. Please reduce the length of max output tokens generated."),
    (400, "{'code': 70000, 'msg': 'Exceeding the limiting length: [max_tokens should be less or equal to 131072]'}"),
    (400, "max_completion_tokens is too large: 262144. This model supports at most 256000 completion tokens."),
    (
        400,
        "max_tokens is too large: 6000. This model supports at most 4096 completion tokens, whereas you provided 6000.",
    ),
    (429, "Throttling.AllocationQuota Allocated quota exceeded, please increase your quota limit."),
    (429, "您的账户已达到速率限制，请您控制请求频率"),
    (429, "该模型当前访问量过大，请您稍后再试"),
    (
        429,
        (
            "Rate limit reached for gpt-4o in organization org on tokens per min (TPM): Limit 30000, Used "
            "29999, Requested 500. Please try again in 1s."
        ),
    ),
    (400, "Range of max_tokens should be [1, 8192]"),
    (400, "Malformed input request: #/textToVideoParams/text: expected maxLength: 512, actual: 676"),
    (400, "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64"),
    (400, "Invalid value for 'max_output_tokens': expected at most 8192"),
    (400, "max_tokens must be at least 1, got 0."),
    (429, "This request would exceed your organization's rate limit of 40,000 input tokens per minute"),
    (429, "已达到最大令牌数量限制 (1000)"),
    (400, "max_tokens: must be less than or equal to 4096"),
    (
        400,
        (
            "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less "
            "than the `context_window` for this model"
        ),
    ),
    (400, "最大输出长度超过限制：max_tokens 应小于 8192"),
    (400, "The size of tool_result image exceeds the limit"),
    (500, "context canceled"),
    (400, "too many messages in queue; maximum length of queue is 100"),
    (400, "stop sequences: too many, maximum length is 4"),
]
NAMED = [
    ("Request body too large for gpt-4o model. Max size: 8000 tokens.", 8000),
    ("Request prompt has 38726 tokens in total, larger than the model input length limit 8192.", 8192),
    ("The provided prompt is 4309 tokens long, but the maximum supported sequence length is just 4096!", 4096),
    ("Input prompt (2664 tokens) is too long and exceeds limit of 2048", 2048),
    ("Prompt length (5056) exceeds maximum sequence length (2048)", 2048),
    ("Range of input length should be [1, 30720]", 30720),
    ("max_tokens must be at least 1, got -186.", 0),
]


@pytest.mark.parametrize(("status", "words", "source"), OVERFLOWS)
def test_words_of_an_overflow_are_known(status: int, words: str, source: str) -> None:
    assert source
    assert type(classify(Failure(provider="acme", status=status, text=words))) is ContextOverflow


@pytest.mark.parametrize("words", ["输入长度超过模型最大上下文长度限制", "上下文长度超出限制", "请求的上下文过长"])
def test_an_overflow_is_known_in_chinese(words: str) -> None:
    assert type(classify(Failure(provider="acme", status=400, text=words))) is ContextOverflow


@pytest.mark.parametrize(("status", "words"), NONE)
def test_words_of_a_rate_or_of_the_answer_are_none(status: int, words: str) -> None:
    assert type(classify(Failure(provider="acme", status=status, text=words))) is not ContextOverflow


@pytest.mark.parametrize(("words", "tokens"), NAMED)
def test_the_limit_is_taken_from_the_words(words: str, tokens: int) -> None:
    assert named_limit(words) == tokens
