"""The abilities of models that one may ask for: the columns of `docs/reference/providers.md` and of `probe_model`."""

from enum import StrEnum


class Ability(StrEnum):
    """One ability; the value is its name for people."""

    STREAM = "stream"
    TOOLS = "tools"
    PARALLEL = "parallel tools"
    IMAGES = "images"
    PDF = "PDF"
    REASONING = "reasoning"
    RETURNS = "must go back"
    USAGE = "usage"
    SCHEMA = "JSON schema"
    OVERFLOW = "overflow"
