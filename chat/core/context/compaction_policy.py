"""The compaction policy: its threshold, the messages it keeps and the form of the summary; with presets.

A preset is one of the documented ways to do it; the site names one, a class may name another or bring its own. Pure:
the caller knows the model and reads the settings.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from chat.core.model.overflow import SHARE_PERCENT, Count, Formula, Limits, overflows, usable_tokens
from chat.errors import TurnConfigInvalid
from sessions_app.core.compaction.compaction import PROTECT_HEAD, TAIL_TOKENS, Bounds
from sessions_app.core.compaction.summary_form import SHOWN_CHARS, TOPIC_SECTIONS, WORK_SECTIONS, Sections, as_sections

MIN_TAIL_TOKENS: Final = 2_000
MAX_TAIL_TOKENS: Final = 15_000
TAIL_SHARE: Final = 4
"""The default size of the tail that is kept verbatim: a quarter of the context, within these bounds."""

LEAST_TAIL_TOKENS: Final = 1
"""What stays when there was nothing beyond that: the last messages alone, whatever they take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPolicy:
    """The policy of compaction. Units: tokens of the session's counter, messages, characters, percent.

    `formula` says when it is too long; `reserved_tokens` is what the formula keeps free (0: as the formula has it),
    `share_percent` how much of the context `share` fills. At the end stay `keep_tokens` (0: a quarter of what fits,
    from 2,000 to 15,000; with `keep_turns` none) and the last `keep_turns` whole, or with `keep_messages` so many
    alone; at the beginning `protect_head` messages. A summary has at most `summary_tokens` (0: no bound) and is made of
    `shown_chars` characters of what each tool was given and gave. At most `min_new_messages` after a summary are not
    worth another. `lists_files` adds which files were read and modified. `sections` are titles with what belongs under
    each: pairs, or a mapping.
    """

    formula: Formula = Formula.V2
    reserved_tokens: int = 0
    share_percent: int = SHARE_PERCENT
    keep_tokens: int = 0
    keep_turns: int = 0
    keep_messages: int = 0
    protect_head: int = PROTECT_HEAD
    summary_tokens: int = 0
    shown_chars: int = SHOWN_CHARS
    min_new_messages: int = 0
    lists_files: bool = False
    sections: Sections | Mapping[str, str] = TOPIC_SECTIONS

    def usable_tokens(self, limits: Limits) -> int:
        """Tokens that a conversation may take; 0 where nothing is known, or nothing would be left."""
        return usable_tokens(
            limits, self.formula, reserved_tokens=self.reserved_tokens, share_percent=self.share_percent
        )

    def overflows(self, count: Count, limits: Limits) -> bool:
        """Whether a call of this size leaves no room for the next."""
        return overflows(
            count, limits, self.formula, reserved_tokens=self.reserved_tokens, share_percent=self.share_percent
        )

    def bounds_when_full(self, usable: int) -> Bounds:
        """Messages kept when a conversation exceeds the window. `usable`: tokens available, more than 0.

        Never more than half of it is kept by tokens: else nothing would be left to summarise.
        """
        quarter = min(MAX_TAIL_TOKENS, max(MIN_TAIL_TOKENS, usable // TAIL_SHARE))
        return self._bounds(min(self.keep_tokens, usable // 2) if self.keep_tokens else quarter)

    def bounds_when_asked(self, tokens: int) -> Bounds:
        """The tail to keep where the context size is unknown. `tokens`: the threshold, else the conversation's size."""
        return self._bounds(min(self.keep_tokens or TAIL_TOKENS, tokens // TAIL_SHARE))

    def least_bounds(self) -> Bounds:
        """Last resort when nothing is left to summarise: keep only the last messages."""
        return Bounds(protect_head=min(self.protect_head, PROTECT_HEAD), tail_tokens=LEAST_TAIL_TOKENS)

    def _bounds(self, tail_tokens: int) -> Bounds:
        if self.keep_messages:
            return Bounds(protect_head=self.protect_head, tail_tokens=0, min_tail_messages=self.keep_messages)
        only_turns = self.keep_turns and not self.keep_tokens
        return Bounds(
            protect_head=self.protect_head,
            tail_tokens=0 if only_turns else tail_tokens,
            tail_turns=self.keep_turns,
            min_new_messages=self.min_new_messages,
        )


V1: Final = CompactionPolicy(formula=Formula.V1)
"""`"v1"`: beyond the context less the longest answer."""

V2: Final = CompactionPolicy()
"""`"v2"`, the default: from the context less the longest answer and a reserve."""

V3: Final = CompactionPolicy(
    formula=Formula.V3, keep_tokens=8_000, summary_tokens=4_096, shown_chars=2_000, sections=WORK_SECTIONS
)
"""`"v3"`: by an estimate of each request; 8,000 tokens stay, summaries of 4,096 in sections for work."""

SHARE: Final = CompactionPolicy(formula=Formula.SHARE, keep_turns=2, summary_tokens=2_000, min_new_messages=4)
"""`"share"`: beyond 90 % of the context by input alone; the last two turns stay, summaries of 2,000 tokens."""

FILES: Final = CompactionPolicy(formula=Formula.RESERVE, keep_tokens=20_000, lists_files=True)
"""`"files"`: beyond the context less 16,384; 20,000 tokens stay, and summaries list the files."""

PRESETS: Final[dict[str, CompactionPolicy]] = {"v1": V1, "v2": V2, "v3": V3, "share": SHARE, "files": FILES}


def compaction_policy(choice: CompactionPolicy | str, *, source: str = "compaction_policy") -> CompactionPolicy:
    """Resolve a policy: a policy object, or the name of a preset.

    `source` is what an error names: the attribute or the setting. **Errors:** `TurnConfigInvalid` for an unknown name,
    and for values that no conversation could be compacted by.
    """
    if isinstance(choice, CompactionPolicy):
        policy = choice
    elif isinstance(choice, str) and choice in PRESETS:  # type: ignore[redundant-expr]  # a developer's value
        policy = PRESETS[choice]
    else:
        known = ", ".join(repr(name) for name in PRESETS)
        raise TurnConfigInvalid(f"{source} must be a CompactionPolicy or one of {known}, not {choice!r}.")
    problems = policy_problems(policy)
    if problems:
        raise TurnConfigInvalid(f"{source}: {' '.join(problems)}")
    return policy


def policy_problems(policy: CompactionPolicy) -> list[str]:
    """Validate a policy; returns one sentence per problem."""
    problems = [] if policy.formula in set(Formula) else [f"There is no formula {policy.formula!r}."]
    for field in fields(policy):
        value = getattr(policy, field.name)
        if field.type is int and not is_count(value):
            problems.append(f"{field.name} must be a whole number from 0, not {value!r}.")
    if is_count(policy.share_percent) and not 1 <= policy.share_percent <= 100:
        problems.append(f"share_percent must be from 1 to 100, not {policy.share_percent!r}.")
    try:
        as_sections(policy.sections)
    except ValueError as error:
        problems.append(str(error))
    return problems


def is_count(value: object) -> bool:
    """Whether a value counts something: a whole number from 0. `True` does not."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
