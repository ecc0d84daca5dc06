"""Rules about calls agree with a plain reading of what they promise, over random sets of rules."""

from datetime import UTC, datetime
from fnmatch import fnmatchcase

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.budget import examples
from tools_app.core.permissions.rules import CallFacts, Permission, RuleAction, RuleLevel, RuleSet, inherited, offered
from tools_app.core.permissions.subjects import command_subject
from tools_app.core.source import Source

NOW = datetime(2026, 11, 27, tzinfo=UTC)
STORED = (RuleLevel.SITE, RuleLevel.CLASS, RuleLevel.OWNER, RuleLevel.CONVERSATION)
PERSONAL = (RuleLevel.OWNER, RuleLevel.CONVERSATION)

rules = st.builds(
    Permission,
    action=st.sampled_from(RuleAction),
    key=st.sampled_from(["bash", "ba*", "*", "mcp:bash", "mcp:*", "@changes", "other"]),
    pattern=st.sampled_from(["*", "git *", "git status *", "rm *", "git push", "?it status"]),
    level=st.sampled_from(STORED),
)
rule_lists = st.lists(rules, max_size=6)
sources = st.sampled_from([Source.AGENT, Source.WORKSPACE, Source.MCP])
commands = st.sampled_from(["git status", "git status -s", "git push", "rm x", "ls"])
SECOND = ["", "; rm x", " && git push"]


def speaks(rule: Permission, source: Source) -> bool:
    """Whether a rule is about a tool `bash` of this source, which changes things."""
    of_others = source is Source.MCP
    if rule.key.startswith("mcp:"):
        return of_others and fnmatchcase("bash", rule.key[4:])
    if rule.action is RuleAction.ALLOW and of_others:
        return False
    return rule.key == "@changes" or fnmatchcase("bash", rule.key)


def matches(pattern: str, command: str) -> bool:
    return fnmatchcase(command, pattern) or (pattern.endswith(" *") and fnmatchcase(command, pattern[:-2]))


def expected(given_rules: list[Permission], pieces: list[str], source: Source) -> RuleAction | None:
    """Allowed only where one plain command is; restricted where any piece is. What site or class denies stays."""
    found: list[RuleAction] = []
    for level in STORED:
        here = []
        for rule in given_rules:
            if rule.level is not level or not speaks(rule, source):
                continue
            if rule.action is RuleAction.ALLOW:
                covers = rule.pattern == "*" or (len(pieces) == 1 and matches(rule.pattern, pieces[0]))
            else:
                covers = any(matches(rule.pattern, piece) for piece in pieces)
            if covers:
                here.append(rule.action)
        if here and here[-1] is RuleAction.DENY and level not in PERSONAL:
            return RuleAction.DENY
        found += here
    return found[-1] if found else None


def action_of(rule_set: RuleSet, call: CallFacts) -> RuleAction | None:
    verdict = rule_set.judge(call, NOW)
    return None if verdict is None else verdict.action


@given(rule_lists, commands, st.sampled_from(SECOND), sources)
@settings(max_examples=examples(2_000), deadline=None)
def test_the_decision_is_that_of_a_plain_reading(
    given_rules: list[Permission], command: str, second: str, source: Source
) -> None:
    call = CallFacts(name="bash", source=source, subjects=(command_subject(command + second),))
    pieces = [command, second.strip(" ;&")] if second else [command]
    assert action_of(RuleSet(own=tuple(given_rules)), call) == expected(given_rules, pieces, source)


@given(rule_lists, rule_lists, commands)
@settings(max_examples=examples(500), deadline=None)
def test_rules_above_only_take_away(own: list[Permission], above: list[Permission], command: str) -> None:
    call = CallFacts(name="bash", subjects=(command_subject(command),))
    alone = action_of(RuleSet(own=tuple(own)), call)
    with_above = action_of(RuleSet(own=tuple(own), above=(inherited(above),)), call)
    strength = [RuleAction.ALLOW, None, RuleAction.ASK, RuleAction.DENY]
    kept = [rule for rule in above if rule.action is not RuleAction.ALLOW or rule.level not in PERSONAL]
    there = expected(kept, [command], Source.AGENT)
    assert with_above == max([alone, there if there in strength[2:] else alone], key=strength.index)


@given(rule_lists, commands, commands, sources)
@settings(max_examples=examples(500), deadline=None)
def test_what_is_offered_lets_the_call_run_and_lowers_no_denial(
    given_rules: list[Permission], command: str, other: str, source: Source
) -> None:
    before = RuleSet(own=tuple(given_rules))
    call = CallFacts(name="bash", source=source, subjects=(command_subject(command),))
    made = offered(call, before, NOW)
    after = before.adding(made)
    assert not made or action_of(after, call) is RuleAction.ALLOW
    elsewhere = CallFacts(name="bash", source=source, subjects=(command_subject(other),))
    changed = action_of(before, elsewhere) != action_of(after, elsewhere)
    assert not changed or any(matches(rule.pattern, other) for rule in made)
