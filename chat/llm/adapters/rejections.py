"""Sentences for requests that a server refuses for a reason that people can do something about.

The words of the server decide which; a sentence says what to do and carries nothing of them, but for the name of one of
our tools. Pure.
"""

import re
from typing import Final, NamedTuple


class Reason(NamedTuple):
    """A reason: its words, the statuses that it comes with (none: any from 400 to 499), and what to do."""

    pattern: re.Pattern[str]
    advice: str
    statuses: frozenset[int] = frozenset()


def _reason(pattern: str, advice: str, *statuses: int) -> Reason:
    return Reason(re.compile(pattern, re.IGNORECASE), advice, frozenset(statuses))


ACCOUNT: Final = (
    _reason(
        r"account[^.\n]{0,60}\b(?:suspended|deactivated|disabled|locked|banned|terminated|frozen)|account_deactivated"
        r"|organi[sz]ation has been (?:disabled|deactivated|suspended)|access (?:has been )?terminated"
        r"|账号已?(?:被)?(?:锁定|冻结|停用)",
        "says that the account is suspended or closed. It has to be settled there; until then choose another model.",
    ),
    _reason(
        r"insufficient[_ ]quota|insufficient[_ ]?(?:credits?|balance|funds|account balance)|billing_hard_limit"
        r"|balance is (?:too low|insufficient|not enough)"
        r"|payment required|out of credits|arrearage|account ?overdue|overdue[- ]payment"
        r"|good standing|suspended due to|余额不足|欠费",
        "says that the account's quota or credit is used up. Check the plan and billing there, or choose another "
        "model.",
    ),
)
"""Reasons that lie in the account: asking again never helps, whatever the status."""

SPENT: Final = re.compile(
    r"exceeded (?:your|the) (?:current )?(?:usage )?quota|quota (?:has been )?exceeded", re.IGNORECASE
)
"""Words that free tiers use for a rate, and others for what is used up. With a moment to ask again it is a rate."""

NO_TOOLS: Final = _reason(
    r"(?:does not|doesn't|not|no endpoints found that) support(?:ed|s)?[^.\n]{0,30}\b(?:tools?\b"
    r"|tool[ _-]?(?:use|call)|function[ _-]?call)"
    r"|(?:tools?|tool[ _]?(?:use|calls?|calling|choice)|function[ _]?calling)"
    r"['\"`]?[^.\n]{0,20}\bnot (?:be )?supported|enable-auto-tool-choice",
    "says that this model has no tools, and this agent needs some. Choose another model.",
    400,
    404,
    422,
    500,
    501,
)
"""A model without tools."""

REQUEST: Final = (
    NO_TOOLS,
    _reason(
        r"country, region|(?:user )?location is not supported|not available in your (?:country|region)"
        r"|unsupported_country",
        "does not serve the place that this server asks from. Choose another model.",
    ),
    _reason(
        r"content[_ ](?:policy|filter|management)|data_?inspection_?failed|responsible ?ai|safety system|moderation"
        r"|inappropriate content|content exists risk|sensitive (?:content|words)|prohibited_content"
        r"|不安全或敏感|敏感内容",
        "refuses what this conversation is about. Put it in other words, or choose another model.",
    ),
    _reason(
        r"effort[^\n]{0,120}(?:supported values|(?:must be|expected) one of|not support)"
        r"|(?:unsupported|invalid)[_ ]value[^\n]{0,60}effort",
        "does not know the reasoning effort that was chosen. Choose another effort, or none.",
        400,
        422,
    ),
    _reason(
        r"image[^.\n]{0,40}(?:exceeds|too large|too big|too small|could not be processed|invalid|dimensions)"
        r"|could not process image|too many images|unsupported image",
        "does not take one of the pictures: it may be too large, or of a kind that is not read there. Leave it out, or "
        "make it smaller.",
    ),
    _reason(
        r"decommissioned|model[^.\n]{0,60}(?:deprecated|retired|no longer (?:available|supported)|shut ?down)",
        "does not offer this model any more. Choose another one.",
    ),
)
"""Reasons that lie in the request or the model."""

TOOL: Final = re.compile(
    r"(?:function|tool)s?(?: name)?[ :=]+[`'\"]([A-Za-z0-9_.-]{1,64})[`'\"][^\n]{0,200}"
    r"(?:schema|parameter|propert|items)"
    r"|schema for (?:function|tool) [`'\"]?([A-Za-z0-9_.-]{1,64})",
    re.IGNORECASE,
)

OTHERWISE: Final = (
    "does not accept the request as it is. Choose another model, or begin a new conversation; if that does not help, "
    "the person who runs this site can find the reason."
)


def advice_on(reasons: tuple[Reason, ...], words: str, status: int) -> str:
    """The advice of the first reason that the words give; empty for none."""
    for reason in reasons:
        fits = status in reason.statuses if reason.statuses else status < 500
        if fits and reason.pattern.search(words):
            return reason.advice
    return ""


def advice_on_tool(words: str) -> str:
    """The advice for a tool whose declaration is refused and that could not be left out; empty for none."""
    match = TOOL.search(words)
    name = next((group for group in match.groups() if group), "") if match else ""
    if not name:
        return ""
    return f"does not take the declaration of the tool {name}. Switch that tool off, or choose another model."
