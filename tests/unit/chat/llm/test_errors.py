"""What a provider's failure means."""

import json
import logging
import re
import time

import httpx2
import openai
import pytest

from chat.errors import (
    ContextOverflow,
    ModelAuth,
    ModelError,
    ModelNotConfigured,
    ModelRejected,
    NetworkLost,
    Overloaded,
    RateLimited,
    StreamStalled,
)
from chat.llm.adapters.overflow_others import Row
from chat.llm.adapters.overflow_words import ROWS, named_limit
from chat.llm.adapters.provider_errors import (
    Failure,
    classify,
    from_error_object,
    from_exception,
    parse_duration,
    retry_after_seconds,
)
from chat.llm.adapters.refusals import plain_words, read_refusal

REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1/chat/completions")
OVERFLOWS = [
    (400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens."),
    (400, "prompt is too long: 212345 tokens > 200000 maximum"),
    (400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
    (400, "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576)."),
    (400, "Input is too long for requested model."),
    (400, "This model's maximum prompt length is 131072 but the request contains 140000 tokens."),
    (400, "Please reduce the length of the messages or completion."),
    (400, "request (20031 tokens) exceeds the available context size (8192 tokens), try increasing it"),
    (400, "Trying to keep the first 5000 tokens when context the overflows."),
    (400, "Invalid request: Your request exceeded model token limit: 131072"),
    (400, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"),
    (500, "prompt too long; exceeded max context length by 4 tokens"),
    (429, "Request too large for model on tokens per min (TPM): Limit 30000, Requested 40000."),
    (413, "Request Entity Too Large"),
    (0, "context_length_exceeded"),
]


NEAR_MISSES = [
    (429, "Throttling error: Too many tokens, please wait before trying again.", RateLimited),
    (
        429,
        "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000.",
        RateLimited,
    ),
    (429, "Your request exceeds the context token rate limit of 20000 per minute", RateLimited),
    (429, "You have exceeded the daily token limit", RateLimited),
    (
        400,
        "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for claude-3-5",
        ModelRejected,
    ),
    (400, "max_tokens is too large: 200000. This model supports at most 16384 completion tokens.", ModelRejected),
    (400, "Range of max_tokens should be [1, 8192]", ModelRejected),
    (400, "Invalid 'user': string too long. Expected a string with maximum length 64.", ModelRejected),
    (400, "Invalid 'tools': array too long. Expected an array with maximum length 128.", ModelRejected),
    (400, "Invalid 'messages[2].tool_calls[0].id': string too long. Expected maximum length 40.", ModelRejected),
    (400, "messages.1.content.0.image.source.base64: image exceeds 5 MB maximum: 6000000 > 5242880", ModelRejected),
    (400, "thinking.budget_tokens: must be less than max_tokens", ModelRejected),
    (500, "context deadline exceeded", Overloaded),
    (503, "The model is too busy", Overloaded),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.server)
def test_each_row_of_the_table_knows_its_words(row: Row) -> None:
    assert re.search(row.pattern, row.words, re.IGNORECASE)
    assert row.source
    error = {"error": {"message": row.words, "type": "invalid_request_error"}}
    assert type(classify(failure(row.status, plain_words(json.dumps(error))))) is ContextOverflow
    assert type(from_error_object("acme", {"message": row.words})) is ContextOverflow


@pytest.mark.parametrize(("status", "text", "kind"), NEAR_MISSES)
def test_words_that_only_resemble_an_overflow_are_none(status: int, text: str, kind: type[ModelError]) -> None:
    assert type(classify(failure(status, text))) is kind


@pytest.mark.parametrize(
    ("words", "tokens"),
    [
        ("This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.", 8192),
        ("prompt is too long: 213462 tokens > 200000 maximum", 200_000),
        ("prompt token count of 138898 exceeds the limit of 64000", 64_000),
        ('{"type":"exceed_context_size_error","n_prompt_tokens":1407,"n_ctx":256}', 256),
        ("Current length is 42328 while limit is 40000. Please reduce the length of the messages.", 40_000),
        ("Prompt exceeds max length", 0),
        ("Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.", 0),
        ("max_tokens must be <= 4096", 0),
    ],
)
def test_the_limit_is_read_from_the_words(words: str, tokens: int) -> None:
    assert named_limit(words) == tokens


def failure(status: int = 0, text: str = "", code: str = "", **more: float) -> Failure:
    return Failure(provider="acme", status=status, text=text, code=code, **more)  # type: ignore[arg-type]  # a test's keywords


@pytest.mark.parametrize(("status", "text"), OVERFLOWS)
def test_overflow_is_recognised_by_its_text(status: int, text: str) -> None:
    assert type(classify(failure(status, text))) is ContextOverflow


@pytest.mark.parametrize(
    ("status", "code", "text", "kind"),
    [
        (400, "", "messages.1.content: field required", ModelRejected),
        (422, "", "bad tool schema", ModelRejected),
        (404, "model_not_found", "", ModelRejected),
        (401, "", "maximum context length", ModelAuth),
        (403, "", "", ModelAuth),
        (400, "invalid_api_key", "", ModelAuth),
        (402, "", "", ModelRejected),
        (429, "insufficient_quota", "You exceeded your current quota", ModelRejected),
        (400, "", "Your credit balance is too low to access the API", ModelRejected),
        (429, "rate_limit_exceeded", "Rate limit reached for requests", RateLimited),
        (400, "rate_limit_error", "", ModelRejected),
        (0, "rate_limit_exceeded", "", RateLimited),
        (0, "overloaded_error", "Overloaded", Overloaded),
        (0, "", "something odd", Overloaded),
        (408, "", "", NetworkLost),
        (409, "", "", Overloaded),
        (500, "", "", Overloaded),
        (503, "", "", Overloaded),
        (529, "overloaded_error", "", Overloaded),
    ],
)
def test_failures_have_one_meaning(status: int, code: str, text: str, kind: type[ModelError]) -> None:
    assert type(classify(failure(status, text, code))) is kind


MISLEADING = (
    "server_error",
    "internal server error, temporarily unavailable",
    "overloaded_error",
    "rate_limit_exceeded: too many requests",
    "timed out",
    "api_error",
)


@pytest.mark.parametrize("words", MISLEADING)
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ModelRejected),
        (401, ModelAuth),
        (402, ModelRejected),
        (403, ModelAuth),
        (404, ModelRejected),
        (405, ModelRejected),
        (407, ModelAuth),
        (408, NetworkLost),
        (409, Overloaded),
        (413, ContextOverflow),
        (418, ModelRejected),
        (422, ModelRejected),
        (425, Overloaded),
        (429, RateLimited),
        (500, Overloaded),
        (503, Overloaded),
        (529, Overloaded),
    ],
)
def test_a_status_counts_for_more_than_words(status: int, kind: type[ModelError], words: str) -> None:
    for error in (classify(failure(status, words, "")), classify(failure(status, "", words))):
        assert type(error) is kind


def test_messages_carry_nothing_of_the_body() -> None:
    for status in (0, 400, 401, 402, 404, 408, 409, 413, 422, 429, 500, 529):
        error = classify(failure(status, "BODY-TEXT for sk-secret", "weird code with spaces"))
        assert "BODY-TEXT" not in f"{error} {error.data}"
        assert "weird" not in f"{error} {error.data}"


def test_the_wait_is_shown_where_it_matters() -> None:
    assert classify(failure(429, retry_after_seconds=3.0)).data["retry_after_seconds"] == 3.0
    assert "retry_after_seconds" not in classify(failure(400, "bad", retry_after_seconds=3.0)).data


NOW = 1_790_000_000.0


@pytest.mark.parametrize(
    ("headers", "text", "seconds"),
    [
        ({}, "", None),
        ({"retry-after-ms": "250"}, "", 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, "", 0.25),
        ({"retry-after": "3"}, "", 3.0),
        ({"retry-after": "0.5"}, "", 0.5),
        ({"retry-after": "Mon, 21 Sep 2026 14:13:30 GMT"}, "", 10.0),
        ({"retry-after": "Mon, 21 Sep 2020 14:13:30 GMT"}, "", 0.0),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after": "nan"}, "", None),
        ({"retry-after": "-4"}, "", None),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-remaining-requests": "0"}, "", 1.0),
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "12"}, "", None),
        (
            {
                "x-ratelimit-reset-requests": "20ms",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "1m30s",
                "x-ratelimit-remaining-tokens": "0",
            },
            "",
            90.0,
        ),
        ({"x-ratelimit-reset": str(int((NOW + 7) * 1000))}, "", 7.0),
        ({"x-ratelimit-reset": str(int(NOW + 7))}, "", 7.0),
        ({"x-ratelimit-reset": "12"}, "", 12.0),
        ({}, "Please try again in 1.5s.", 1.5),
        ({}, "Please try again in 6m0s. Thanks", 360.0),
        ({}, "Please retry in 20.04466179s.", 20.04466179),
        ({}, "Please retry after 12 seconds. To increase your rate limit", 12.0),
        ({}, '{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}', 34.0),
        ({}, "Please try again in 2 hours, 5 minutes.", 7500.0),
        ({}, '{"type": "usage_limit_reached", "resets_in_seconds": 12345}', 12345.0),
    ],
)
def test_waits_are_read_from_headers_and_words(headers: dict[str, str], text: str, seconds: float | None) -> None:
    assert retry_after_seconds(headers, now=NOW, text=text) == (None if seconds is None else pytest.approx(seconds))


def test_durations_are_read_whole_or_not_at_all() -> None:
    assert parse_duration("1h2m3s") == 3723.0
    assert parse_duration("5 bananas") is None
    assert parse_duration("") is None


def status_error(status: int, body: str, headers: dict[str, str] | None = None) -> openai.APIStatusError:
    response = httpx2.Response(status, text=body, headers=headers or {}, request=REQUEST)
    return openai.APIStatusError("provider said", response=response, body=None)


def test_the_body_goes_to_the_log_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    body = '{"error": "Incorrect API key provided: sk-live-abcdefghijkl. custom-key-1234 is unknown"}'
    with caplog.at_level(logging.WARNING, "chat.llm"):
        error = from_exception("acme", status_error(401, body), secrets=("custom-key-1234",))
    logged = caplog.records[-1].__dict__["provider_body"]
    assert "Incorrect" in logged
    assert "sk-live" not in logged
    assert "custom-key" not in logged
    assert "Incorrect" not in str(error)


FREE_TIER = (
    "You exceeded your current quota, please check your plan and billing details. * Quota exceeded for metric: "
    "generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 5. Please retry in 1.2s."
)


def test_a_free_tier_that_names_a_moment_limits_the_rate() -> None:
    """https://github.com/continuedev/continue/issues/10062."""
    error = from_exception("acme", status_error(429, json.dumps({"error": {"message": FREE_TIER}})))
    assert (type(error), error.data["retry_after_seconds"]) == (RateLimited, 1.2)
    assert type(from_error_object("acme", {"code": 429, "message": FREE_TIER})) is RateLimited
    spent = {"error": {"message": "You exceeded your current quota.", "code": "insufficient_quota"}}
    assert type(from_exception("acme", status_error(429, json.dumps(spent), {"retry-after": "2"}))) is ModelRejected


@pytest.mark.parametrize("status", [400, 401, 402, 403, 429])
@pytest.mark.parametrize(
    "words",
    [
        "Your account org-1 <ak-2> is suspended, please check your plan and billing details",
        "This organization has been disabled.",
        '{"code": "account_deactivated"}',
        "Insufficient Balance",
        '{"code": "1113", "message": "余额不足或无可用资源包,请充值。"}',
        "Access denied, please make sure your account is in good standing.",
    ],
)
def test_an_account_that_is_closed_or_empty_is_not_asked_again(status: int, words: str) -> None:
    error = classify(failure(status, words))
    assert not error.retryable
    assert "choose another model" in error.message


def test_a_wait_of_hours_is_named_with_its_moment() -> None:
    error = classify(failure(429, retry_after_seconds=3 * 3600 + 60, now=NOW))
    assert "in 3 h 1 min, at 17:14 on 21 September (UTC)" in error.message
    assert error.data["retry_at"] == "2026-09-21T17:14:20+00:00"


@pytest.mark.parametrize(
    ("status", "words", "advice"),
    [
        (400, "registry.ollama.ai/library/gemma:2b does not support tools", "no tools"),
        (403, "Country, region, or territory not supported", "place"),
        (
            400,
            "<400> InternalError.Algo.DataInspectionFailed: Input data may contain inappropriate content.",
            "other words",
        ),
        (400, "The model `mixtral-8x7b` has been decommissioned and is no longer supported.", "any more"),
        (400, "messages.1.content.0.image: image exceeds 5 MB maximum", "pictures"),
        (400, "Invalid schema for function 'tool_bad': In context=()", "the tool tool_bad"),
        (400, "something odd", "another model"),
        (404, "model 'x' not found", "another model"),
        (401, "bad key", "API key"),
        (0, "something odd", "Ask again"),
    ],
)
def test_each_refusal_says_what_to_do(status: int, words: str, advice: str) -> None:
    message = classify(failure(status, words)).message
    assert advice in message
    assert "log" not in message


def test_the_status_error_carries_headers_over() -> None:
    error = from_exception("acme", status_error(429, "", {"retry-after": "7", "x-should-retry": "false"}))
    assert error.data["retry_after_seconds"] == 7.0
    assert error.data["should_retry"] is False


def test_a_date_is_a_wait_from_now() -> None:
    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 30))
    wait = from_exception("acme", status_error(503, "", {"retry-after": date})).data["retry_after_seconds"]
    assert 27 < wait <= 30


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (httpx2.ReadTimeout("slow"), StreamStalled),
        (httpx2.ConnectError("refused"), NetworkLost),
        (httpx2.ConnectTimeout("slow"), NetworkLost),
        (httpx2.ReadError("reset"), NetworkLost),
        (httpx2.RemoteProtocolError("cut"), NetworkLost),
        (httpx2.UnsupportedProtocol("ftp"), ModelNotConfigured),
    ],
)
def test_transport_failures_are_classified_with_and_without_the_client(cause: httpx2.HTTPError, kind: type) -> None:
    assert type(from_exception("acme", cause)) is kind
    wrapped = openai.APIConnectionError(request=REQUEST)
    wrapped.__cause__ = cause
    assert type(from_exception("acme", wrapped)) is kind


def test_errors_inside_a_stream_may_name_a_status() -> None:
    assert type(from_error_object("acme", {"code": 502, "message": "upstream"})) is Overloaded
    assert type(from_error_object("acme", {"code": 429, "message": ""})) is RateLimited
    assert type(from_error_object("acme", "the model is overloaded")) is Overloaded
    assert (
        type(from_error_object("acme", {"type": "invalid_request_error", "code": 400, "message": "no"}))
        is ModelRejected
    )


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (400, [{"error": {"code": 400, "message": "API key not valid. "}}], ModelAuth, "API key"),
        (
            400,
            {"error": {"code": "tool_use_failed", "failed_generation": "<function=look"}},
            Overloaded,
            "call that its model",
        ),
        (500, {"error": {"message": "error parsing tool call: raw='{\"q\": '"}}, Overloaded, "call that its model"),
        (500, {"error": {"message": "Failed to parse tool call arguments as JSON"}}, Overloaded, "call that its model"),
        (403, {"code": 30001, "message": "Sorry, your account balance is insufficient"}, ModelAuth, "credit"),
        (429, {"error": {"code": "1113", "message": "余额不足或无可用资源包,请充值。"}}, ModelRejected, "credit"),
        (
            400,
            {"error": {"code": "1301", "message": "输入或生成内容可能包含不安全或敏感内容"}},
            ModelRejected,
            "other words",
        ),
    ],
)
def test_words_count_however_they_are_written(status: int, body: object, kind: type[ModelError], words: str) -> None:
    for text in (json.dumps(body), json.dumps(body, ensure_ascii=False), json.dumps({"error": json.dumps(body)})):
        error = from_exception("acme", status_error(status, text))
        assert (type(error), words in error.message) == (kind, True)


def test_the_reset_of_another_server_is_read_where_it_is_quoted() -> None:
    """As a gateway quotes the daily limit of a free model."""
    headers = {
        "X-RateLimit-Limit": "50",
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset": str(int((NOW + 7200) * 1000)),
    }
    body = {
        "error": {"message": "Rate limit exceeded: free-models-per-day", "code": 429, "metadata": {"headers": headers}}
    }
    assert retry_after_seconds({}, now=NOW, text=json.dumps(body)) == pytest.approx(7200)


@pytest.mark.parametrize("word", ["x", "1", " ", "messages ", "user: ", "id ", "tool ", "image ", "token limit ", '{"'])
def test_a_body_of_megabytes_is_read_in_a_moment(word: str) -> None:
    body = word * (4_000_000 // len(word))
    started = time.perf_counter()
    error = from_exception("acme", status_error(400, body + "prompt is too long: 213462 tokens > 200000 maximum"))
    assert type(error) is ContextOverflow
    named_limit(plain_words(body)), read_refusal(plain_words(body)), parse_duration(body)
    assert time.perf_counter() - started < 5.0  # without bounds: minutes
