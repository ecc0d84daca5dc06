"""Token counts as providers report them, made equal."""

from dataclasses import fields

from chat.core.model.language_model import Usage
from thinkproject.kernel.jsonvalue import JSONValue


def read_usage(usage: JSONValue) -> Usage:
    """Token counts in either vendor's spelling; missing and non-numeric values count as zero.

    Made equal: the input includes what was read from a cache or written into one, the output includes reasoning, also
    where a provider counts them apart.
    """
    if not isinstance(usage, dict):
        return Usage()
    given, read, written = _read_input(usage)
    output = _count(usage, "completion_tokens", "output_tokens")
    details = usage.get("completion_tokens_details") or usage.get("output_tokens_details")
    reasoning = _count(details, "reasoning_tokens")
    if reasoning and (reasoning > output or _count(usage, "total_tokens") == given + output + reasoning):
        output += reasoning
    return Usage(
        input_tokens=given,
        output_tokens=output,
        reasoning_tokens=reasoning,
        cached_tokens=read,
        cache_write_tokens=written,
    )


def _read_input(usage: "dict[str, JSONValue]") -> tuple[int, int, int]:
    """Tokens of the input, of those read from a cache, and of those written into it."""
    given = _count(usage, "prompt_tokens", "input_tokens")
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    read = _count(details, "cached_tokens") or _count(
        usage, "prompt_cache_hit_tokens", "cache_read_input_tokens", "cached_tokens"
    )
    written = _count(details, "cache_write_tokens") or _count(usage, "cache_creation_input_tokens")
    # The words of a provider that counts them besides its `input_tokens`; who says `prompt_tokens` includes them.
    is_apart = "prompt_tokens" not in usage and {"cache_read_input_tokens", "cache_creation_input_tokens"} & set(usage)
    if is_apart or given < read + written:
        given += read + written
    return given, read, written


def completed(usage: Usage, before: Usage) -> Usage:
    """Counts, with those of an earlier report that the later one lacks: some servers count the input at the start."""
    counts = {each.name: getattr(usage, each.name) or getattr(before, each.name) for each in fields(Usage)}
    return Usage(**counts)


def _count(values: JSONValue, *names: str) -> int:
    for name in names:
        value = values.get(name) if isinstance(values, dict) else None
        value = float(value) if isinstance(value, str) and value.isdecimal() else value
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12:
            return int(value)
    return 0
