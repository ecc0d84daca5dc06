"""Map provider failures to the `ModelError` family, with the provider's retry delay if given.

Messages name the provider and what to do; they carry no credential and nothing of the provider's body, which goes,
redacted, to the log.
"""

import email.utils
import logging
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import httpx2
import openai

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
from chat.llm.adapters.overflow_words import is_overflow
from chat.llm.adapters.redaction import redact_text
from chat.llm.adapters.refusals import plain_words
from chat.llm.adapters.rejections import ACCOUNT, OTHERWISE, REQUEST, SPENT, advice_on, advice_on_tool
from thinkproject.kernel.jsonvalue import JSONValue, dump

logger = logging.getLogger("chat.llm")

_RATE: Final = re.compile(r"rate[_ -]?limit|too[_ ]many[_ ]requests|resource_exhausted|throttl", re.IGNORECASE)
_OVERLOAD: Final = re.compile(
    r"overloaded|server_error|internal[_ ](?:server[_ ])?error|service[_ ]unavailable|at capacity|bad gateway"
    r"|api_error|timed? ?out|temporarily unavailable",
    re.IGNORECASE,
)
_AUTH: Final = re.compile(r"invalid_api_key|authentication_error|incorrect api key|permission_error", re.IGNORECASE)
_BAD_KEY: Final = re.compile(
    r"api[_ ]key[_ ](?:not[_ ]valid|invalid|expired|not[_ ]found)|(?:incorrect|invalid) api[_ ]?key", re.IGNORECASE
)
"""Words about the key that some servers send with status 400."""

_BAD_CALL: Final = re.compile(
    r"tool_use_failed|failed_generation|failed to call a function|(?:error|failed)[^.\n]{0,20} pars\w+[^.\n]{0,10}"
    r" (?:tool|function)[ _]calls?|failed to parse (?:tool|function)[ _]calls?",
    re.IGNORECASE,
)
"""Words of servers that could not read the call that their own model wrote."""

_REFUSED: Final = re.compile(
    r"(?:invalid_request|bad_?request|unprocessable_?entity|validation)(?:_?error)?|un(?:supported|known)_parameter"
    r"|unsupported_value|invalid_parameter(?:_error)?|invalid_value",
    re.IGNORECASE,
)
"""Codes of errors in a stream that a server with an eye for it would have sent with status 400."""

_UNITS: Final = "milliseconds?|ms|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s|days?|d"
_TRY_AGAIN: Final = re.compile(
    r"(?:(?:try|retry)(?: again)?(?: your request)?|please wait|available again|resets?) (?:in |after |for )?"
    rf"(?:about )?((?:\d+(?:\.\d+)? ?(?:{_UNITS})(?![a-z]),? ?)+)"
    r"|retry_?delay\W{1,4}(?:seconds\W{1,3})?(\d+(?:\.\d+)?s?)|resets?_(?:in|after)_seconds\W{1,3}(\d+)",
    re.IGNORECASE,
)
_RESET_IN_TEXT: Final = re.compile(r"x-ratelimit-reset\W{1,5}(\d{10,13})\b", re.IGNORECASE)
_DURATION: Final = re.compile(rf"(\d+(?:\.\d+)?) ?({_UNITS})")
_UNIT_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SHORT_SECONDS: Final = 120.0
_MAX_DURATION: Final = 64  # characters
_MAX_WAIT_SECONDS: Final = 366 * 86400.0
_SAFE_CODE: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_OVERFLOW_STATUSES: Final = frozenset({400, 413, 422, 429, 500})


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A provider's error. `status` is 0 for an error within a stream; `code` is the provider's own.

    `now`: epoch seconds, for the moment when it may be asked again.
    """

    provider: str
    status: int = 0
    code: str = ""
    text: str = ""
    retry_after_seconds: float | None = None
    should_retry: bool | None = None
    now: float = 0.0

    @property
    def where(self) -> str:
        """The provider and the status, for a message."""
        return f"{self.provider} (HTTP {self.status})" if self.status else self.provider


def classify(failure: Failure) -> ModelError:
    """Classify a failure, from the most to the least reliable sign. Pure."""
    error = _classify_text(failure) or _classify_status(failure) or _classify_words(failure)
    error.data.setdefault("provider", failure.provider)
    if failure.status:
        error.data.setdefault("status", failure.status)
    if _SAFE_CODE.fullmatch(failure.code):
        error.data.setdefault("provider_code", failure.code)
    if failure.retry_after_seconds is not None and isinstance(error, RateLimited | Overloaded):
        error.data.setdefault("retry_after_seconds", failure.retry_after_seconds)
        if failure.now:
            error.data.setdefault("retry_at", _moment(failure).isoformat(timespec="seconds"))
    if failure.should_retry is not None:
        error.data.setdefault("should_retry", failure.should_retry)
    return error


def _classify_text(failure: Failure) -> ModelError | None:
    words, where = f"{failure.code} {failure.text}", failure.where
    advice = advice_on(ACCOUNT, words, failure.status)
    if advice:
        return (ModelAuth if failure.status in (401, 403, 407) else ModelRejected)(f"{where} {advice}")
    if failure.status in (401, 407):
        return None
    if (not failure.status or failure.status in _OVERFLOW_STATUSES) and is_overflow(words):
        return ContextOverflow()
    if failure.status == 413:
        return ContextOverflow()
    if failure.status in (0, 400, 422, 500) and _BAD_CALL.search(words):
        return Overloaded(f"{where} could not read the call that its model wrote. Ask again, or choose another model.")
    is_spent = failure.status < 500 and failure.retry_after_seconds is None and SPENT.search(words)
    if failure.status == 402 or is_spent:
        return ModelRejected(f"{where} {ACCOUNT[-1].advice}")
    if failure.status in (408, 409, 425, 429):
        return None  # a moment's state, whatever the words
    advice = advice_on(REQUEST, words, failure.status)
    return ModelRejected(f"{where} {advice}") if advice and failure.status else None


def _classify_status(failure: Failure) -> ModelError | None:
    status, where = failure.status, failure.where
    if status in (401, 403, 407) or (status == 400 and _BAD_KEY.search(failure.text)):
        return ModelAuth(f"{where} refused the credentials. Check the API key and that it may use this model.")
    if status == 404:
        return ModelRejected(
            f"{where} knows no such model or address. Choose another model, or check its name and the base URL."
        )
    if status == 429:
        return RateLimited(f"{where} limits the rate of requests{_when(failure)}.")
    if status == 408:
        return NetworkLost(f"{where} gave up waiting for the request.")
    if status in (409, 425) or status >= 500:
        return Overloaded(f"{where} is overloaded or failing{_when(failure)}.")
    return None


def _classify_words(failure: Failure) -> ModelError:
    words, where = f"{failure.code} {failure.text}", failure.where
    if failure.status and not _AUTH.fullmatch(failure.code):
        # Words decide where there is no status: a body may quote anything, such as the request.
        advice = advice_on_tool(words) if failure.status in (400, 422) else ""
        return ModelRejected(f"{where} {advice or OTHERWISE}")
    if _AUTH.search(words):
        return ModelAuth(f"{where} refused the credentials. Check the API key and that it may use this model.")
    if _RATE.search(words):
        return RateLimited(f"{where} limits the rate of requests{_when(failure)}.")
    if _OVERLOAD.search(words):
        return Overloaded(f"{where} is overloaded or failing{_when(failure)}.")
    return Overloaded(f"{where} broke off its answer with an error. Ask again, or choose another model.")


def _when(failure: Failure) -> str:
    """The wait that is asked for: seconds, or where it is long the moment, which people can plan with."""
    wait = failure.retry_after_seconds
    if wait is None:
        return ""
    if wait <= _SHORT_SECONDS or not failure.now:
        return f"; it asks to wait {wait:.3g} s"
    hours, minutes = divmod(math.ceil(wait / 60), 60)
    lasting = f"{hours} h {minutes} min" if hours else f"{minutes} min"
    moment = f"{_moment(failure):%H:%M on %-d %B} (UTC)"
    return f"; it can be asked again in {lasting}, at {moment}. Until then choose another model"


def _moment(failure: Failure) -> datetime:
    wait = min(failure.retry_after_seconds or 0.0, _MAX_WAIT_SECONDS)
    return datetime.fromtimestamp(failure.now + wait, UTC)


def from_error_object(provider: str, error: JSONValue, *, secrets: tuple[str, ...] = ()) -> ModelError:
    """Classify an error that arrived inside a stream (or with status 200), and log it redacted."""
    text = plain_words(error if isinstance(error, str) else dump(error))
    code, status, now = "", 0, time.time()
    if isinstance(error, dict):
        code = str(error.get("code") or error.get("type") or "")
        status = int(code) if code.isdecimal() and len(code) == 3 and int(code) >= 400 else 0
        status = 400 if _REFUSED.fullmatch(code) else status
    failure = Failure(
        provider=provider,
        status=status,
        code=code,
        text=text,
        retry_after_seconds=_text_wait(text, now),
        now=now,
    )
    found = _logged(failure, secrets)
    found.words = text
    return found


def from_exception(
    provider: str, error: openai.OpenAIError | httpx2.HTTPError | httpx2.InvalidURL, *, secrets: tuple[str, ...] = ()
) -> ModelError:
    """Classify the HTTP client's exception, and log the provider's body redacted."""
    if isinstance(error, openai.APIStatusError):
        now = time.time()
        body = error.body
        code = str(body.get("code") or body.get("type") or "") if isinstance(body, dict) else ""
        text = _body_text(error)
        headers = error.response.headers
        failure = Failure(
            provider=provider,
            status=error.status_code,
            code=code,
            text=text,
            retry_after_seconds=retry_after_seconds(headers, now=now, text=text),
            now=now,
            should_retry={"true": True, "false": False}.get(headers.get("x-should-retry", "")),
        )
        return _logged(failure, secrets)
    return _from_transport(provider, error)


def _body_text(error: openai.APIStatusError) -> str:
    try:
        return plain_words(error.response.text)
    except (httpx2.HTTPError, httpx2.StreamError, UnicodeError):
        return plain_words(str(error.body or ""))


def _from_transport(provider: str, error: Exception) -> ModelError:
    cause = error.__cause__ if isinstance(error, openai.APIConnectionError) and error.__cause__ else error
    if isinstance(cause, httpx2.ReadTimeout):
        return StreamStalled(f"{provider} fell silent.", provider=provider)
    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout):
        return NetworkLost(
            f"{provider} cannot be reached. Is its server running, is the address right?", provider=provider
        )
    if isinstance(cause, httpx2.InvalidURL | httpx2.UnsupportedProtocol):
        return ModelNotConfigured(f"The base URL of {provider} is not a usable address.", provider=provider)
    if isinstance(cause, openai.APIConnectionError | httpx2.HTTPError):
        return NetworkLost(f"The connection to {provider} was lost.", provider=provider)
    return ModelNotConfigured(
        f"The client for {provider} cannot be set up: check its API key and base URL.", provider=provider
    )


def _logged(failure: Failure, secrets: tuple[str, ...]) -> ModelError:
    error = classify(failure)
    logger.warning(
        "model provider failed",
        extra={
            "action": "model_failed",
            "provider": failure.provider,
            "status": failure.status,
            "code": error.code,
            "provider_body": redact_text(failure.text, secrets=secrets),
        },
    )
    return error


def retry_after_seconds(headers: Mapping[str, str], *, now: float, text: str = "") -> float | None:
    """The provider's retry delay, from headers or text; `None` if it gives none.

    Units: `now` is epoch seconds. Order: `retry-after-ms`, `retry-after` (seconds or HTTP date), the reset of an
    exhausted `x-ratelimit` bucket, "try again in 20s" in the text.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    plain = headers.get("retry-after", "").strip()
    if plain:
        seconds = _number(plain)
        wait = seconds if seconds is not None else _date_wait(plain, now)
        if wait is not None:
            return max(0.0, wait)
    bucket = _bucket_wait(headers, now)
    return bucket if bucket is not None else _text_wait(text, now)


def _date_wait(value: str, now: float) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(value).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return None


def _bucket_wait(headers: Mapping[str, str], now: float) -> float | None:
    waits = []
    for kind in ("requests", "tokens"):
        wait = parse_duration(headers.get(f"x-ratelimit-reset-{kind}", ""))
        if wait is not None and headers.get(f"x-ratelimit-remaining-{kind}", "0").strip() == "0":
            waits.append(wait)
    instant = _number(headers.get("x-ratelimit-reset"))
    if instant is not None and not waits:
        seconds = instant / 1000 if instant > 1e11 else instant
        # Small numbers are "in N seconds", large ones an instant (some vendors count it in milliseconds).
        waits.append(max(0.0, seconds - now) if seconds > 1e9 else seconds)
    return max(waits, default=None)


def _text_wait(text: str, now: float) -> float | None:
    reset = _RESET_IN_TEXT.search(text)  # a header of another server, quoted
    if reset is not None:
        return _bucket_wait({"x-ratelimit-reset": reset[1]}, now)
    match = _TRY_AGAIN.search(text)
    found = next((group for group in match.groups() if group), "") if match else ""
    return parse_duration(found.lower().strip(" ,")) if found else None


def parse_duration(value: str) -> float | None:
    """Seconds of `20ms`, `1s`, `6m0s`, `2 hours 5 minutes` or a plain number; `None` for anything else."""
    value = value.strip()[:_MAX_DURATION]
    plain = _number(value)
    if plain is not None:
        return plain
    parts = _DURATION.findall(value)
    if not parts or _DURATION.sub("", value).strip(" ,"):
        return None
    return sum(float(number) * _unit_seconds(unit) for number, unit in parts)


def _unit_seconds(unit: str) -> float:
    return _UNIT_SECONDS["ms" if unit.startswith(("ms", "milli")) else unit[0]]


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value else None
    except ValueError:
        return None
    return number if number is not None and 0 <= number < 1e15 else None
