"""Rows of the table of overflows (`overflow_words.py`) for servers that are met less often. Pure."""

from typing import Final, NamedTuple


class Row(NamedTuple):
    """Words of one server. `status`: the one they came with, 0 for an error within a stream."""

    server: str
    pattern: str
    words: str
    status: int
    source: str


_GH: Final = "https://github.com/"

OTHERS: Final[tuple[Row, ...]] = (
    Row(
        "vLLM (no room for an answer)",
        r"max_tokens must be at least 1, got -\d",
        "max_tokens must be at least 1, got -186.",
        400,
        _GH + "vllm-project/vllm/issues/4667",
    ),
    Row(
        "vLLM (scheduler)",
        r"prompt \(\d+ tokens\) is too long",
        "Input prompt (2664 tokens) is too long and exceeds limit of 2048",
        400,
        _GH + "vllm-project/vllm/issues/525",
    ),
    Row(
        "TensorRT-LLM",
        r"prompt length \(\d+\) exceeds maximum (?:input|sequence) length",
        "Prompt length (5056) exceeds maximum sequence length (2048)",
        500,
        _GH + "triton-inference-server/tensorrtllm_backend/issues/141",
    ),
    Row(
        "MLC",
        r"larger than the model input length limit",
        "Request prompt has 38726 tokens in total, larger than the model input length limit 8192.",
        400,
        _GH + "mlc-ai/mlc-llm/issues/2692",
    ),
    Row(
        "GitHub Models",
        r"tokens_limit_reached|request body too large for .{0,60}\btokens",
        "Request body too large for gpt-4o model. Max size: 8000 tokens.",
        413,
        _GH + "cline/cline/issues/2115",
    ),
    Row(
        "SambaNova",
        r"maximum supported sequence length is",
        "Requested generation length 1 is not possible! The provided prompt is 4309 tokens long, so generating 1 "
        "tokens requires a sequence length of 4310, but the maximum supported sequence length is just 4096!",
        400,
        _GH + "cline/cline/issues/294",
    ),
    Row(
        "Bedrock (tokens)",
        r"exceeds? the max(?:imum)? input tokens?",
        "Input exceeds the max input token limit",
        400,
        _GH + "openclaw/openclaw/issues/58839",
    ),
    Row(
        "Azure (messages)",
        r"\$\.messages['\"]? is too long",
        "'$.messages' is too long. Maximum length is 2048, but got 4970 items.",
        400,
        "https://portkey.ai/error-library/length-limit-error-10027",
    ),
    Row(
        "OpenAI (tokens of a request)",
        r"\bmax(?:imum)? [\d,]+ tokens per request",
        "Requested 319487 tokens, max 300000 tokens per request",
        400,
        _GH + "ridgesai/ridges-old/pull/75",
    ),
    Row(
        "NIM",
        r"exceeds maximum allowed token size",
        "Input length 1624 exceeds maximum allowed token size 512",
        400,
        _GH + "run-llama/llama_index/issues/15180",
    ),
    Row(
        "exllama",
        r"exceeds dimension size",
        "start (958) + length (1624) exceeds dimension size (2048).",
        500,
        _GH + "henk717/KoboldAI/issues/463",
    ),
    Row(
        "gpt4all",
        r"prompt size exceeds the context window",
        "The prompt size exceeds the context window size and cannot be processed.",
        500,
        _GH + "nomic-ai/gpt4all/issues/664",
    ),
    Row(
        "Spark",
        r"token ?数量?超(?:过|出)|字数太多",
        "token数量超过上限。对话历史+问题的字数太多，需要精简输入",
        400,
        "https://www.xfyun.cn/doc/spark (code 10907)",
    ),
    Row(
        "GLM (Chinese)",
        r"prompt ?(?:超长|过长)|(?:输入|上下文|提示词|请求)[^。\n]{0,12}(?:超长|过长"
        r"|超限|超(?:出|过)[^。\n]{0,12}(?:限制|上限|最大|长度))",
        "Prompt 超长",
        400,
        "https://docs.bigmodel.cn (table of errors, code 1261)",
    ),
)
