"""Rules about calls: what an allowance covers for certain, and what a restriction may concern."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tools_app.core.permissions.rules import (
    CallFacts,
    Permission,
    RuleAction,
    RuleLevel,
    RuleSet,
    facts_from,
    inherited,
    offered,
)
from tools_app.core.permissions.secret_files import is_secret, secret_among
from tools_app.core.permissions.subjects import Subject, address_subject, command_subject, path_subjects, text_subject
from tools_app.core.source import Source
from tools_app.errors import ToolDeclarationInvalid

NOW = datetime(2026, 11, 27, tzinfo=UTC)
ALLOW, ASK, DENY = RuleAction.ALLOW, RuleAction.ASK, RuleAction.DENY


def rule(
    action: RuleAction, key: str, pattern: str = "*", level: RuleLevel = RuleLevel.OWNER, **fields: Any
) -> Permission:
    return Permission(action=action, key=key, pattern=pattern, level=level, **fields)


def decided(call: CallFacts, *rules: Permission, above: tuple[tuple[Permission, ...], ...] = ()) -> RuleAction | None:
    verdict = RuleSet(own=rules, above=above).judge(call, NOW)
    return verdict.action if verdict is not None else None


def bash(command: str) -> CallFacts:
    return CallFacts(name="bash", permission="bash", subjects=(command_subject(command),))


def read(path: str, **fields: Any) -> CallFacts:
    subjects = tuple(path_subjects(path, **fields))
    return CallFacts(name="read_file", permission="read", changes=False, subjects=subjects)


GIT_STATUS = rule(ALLOW, "bash", "git status *")


@pytest.mark.parametrize(
    "command", ["git status", "git status -s", "  git   status  -s ", 'git status "a b"', "git status 'a; b'"]
)
def test_an_allowance_covers_the_command_with_its_arguments(command: str) -> None:
    assert decided(bash(command), GIT_STATUS) is ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "git status && rm -rf /",
        "git status; rm -rf /",
        "git status | sh",
        "git status & rm x",
        "git status\nrm x",
        "git status\r rm x",
        "git status $(rm x)",
        "git status `rm x`",
        'git status "$(rm x)"',
        'git status "`rm x`"',
        "git status > /etc/passwd",
        "git status < x",
        "git status >(rm x)",
        "git status $'\\x3b' rm",
        "git status \\; rm",
        "git status {a,b}",
        "git status *.py",
        "git status ~",
        "git status # rm",
        "git\u00a0status",
        "git status\u2028rm x",
        "git status \u037e rm x",  # the Greek question mark, which looks like a semicolon
        "git status \uff06\uff06 rm x",  # wide ampersands
        "\uff47it status",
        "GIT status",
        "Git Status",
        "git Status",
        "git statusx",
        "git status-x",
        "gitt status",
        "/tmp/git status",
        "./git status",
        "git -C /x status",
        "X=1 git status",
        "sudo git status",
        "git status 'a",
        "",
    ],
)
def test_an_allowance_covers_nothing_else(command: str) -> None:
    assert decided(bash(command), GIT_STATUS) is None


@pytest.mark.parametrize(
    "command",
    [
        "rm x",
        "rm",
        "RM x",
        "\uff52\uff4d x",
        "/bin/rm x",
        "git status && rm -rf /",
        "ls; rm x",
        "ls | xargs rm",
        "sudo rm x",
        "timeout 5 rm x",
        "A=1 rm x",
        "env A=1 rm x",
        "find . -exec rm {} +",
        "if true; then rm x; fi",
        "(rm x)",
        "'rm' x",
        "r\\m x",
        "r''m x",
        "echo $(rm x)",
        "echo `rm x`",
    ],
)
def test_a_denial_holds_for_every_piece_of_a_command(command: str) -> None:
    assert decided(bash(command), rule(DENY, "bash", "rm *")) is DENY


@pytest.mark.parametrize("command", ["bash -c 'x'", "$X y", "echo $(x)", "python -c 'import os'", "eval x", "a \\x"])
def test_what_cannot_be_told_of_a_command_is_asked_where_something_is_denied(command: str) -> None:
    denial = rule(DENY, "bash", "rm *", RuleLevel.CLASS)
    assert decided(bash(command), denial) is ASK
    assert decided(bash(command), denial, rule(ALLOW, "bash")) is ASK
    assert decided(bash(command)) is None
    assert decided(bash("ls x"), denial, rule(ALLOW, "bash")) is ALLOW


def test_the_last_match_decides_and_what_site_and_class_deny_stays() -> None:
    call = bash("git push")
    assert decided(call, rule(DENY, "bash", "git *"), rule(ALLOW, "bash", "git push *")) is ALLOW
    assert decided(call, rule(ALLOW, "bash", "git push *"), rule(DENY, "bash", "git *")) is DENY
    mine = rule(ALLOW, "bash", level=RuleLevel.CONVERSATION)
    for level in (RuleLevel.SITE, RuleLevel.CLASS):
        assert decided(call, mine, rule(DENY, "bash", "git *", level)) is DENY
        assert decided(call, mine, rule(ASK, "bash", "git *", level)) is ALLOW
        assert decided(call, rule(DENY, "*", "*", level), rule(ALLOW, "bash", "git *", level)) is ALLOW
    assert decided(call, rule(DENY, "bash", "*", RuleLevel.SITE), rule(ALLOW, "bash", "*", RuleLevel.CLASS)) is DENY
    assert decided(call, mine, rule(DENY, "bash", expires_at=NOW)) is ALLOW
    assert decided(call, mine, rule(DENY, "bash", level=RuleLevel.CONVERSATION, expires_at=NOW + timedelta(1))) is DENY


def test_a_high_risk_is_allowed_by_its_class_alone() -> None:
    call = CallFacts(name="refund", is_high_risk=True)
    for level in RuleLevel:
        expected = ALLOW if level is RuleLevel.CLASS else None
        assert decided(call, rule(ALLOW, "refund", level=level)) is expected
    assert offered(call, RuleSet(), NOW) == ()


def test_tools_of_others_are_allowed_by_their_source_and_denied_by_any_name() -> None:
    call = CallFacts(name="read", source=Source.MCP)
    assert call.key == "mcp:read"
    assert decided(call, rule(ALLOW, "read")) is None
    assert decided(call, rule(ALLOW, "*")) is None
    assert decided(call, rule(ALLOW, "@changes")) is None
    assert decided(call, rule(ALLOW, "extensions:read")) is None
    assert decided(call, rule(ALLOW, "mcp:read")) is ALLOW
    for key in ("read", "READ", "*", "@changes", "mcp:*"):
        assert decided(call, rule(DENY, key)) is DENY
    own = CallFacts(name="read", permission="read", changes=False)
    assert decided(own, rule(ALLOW, "mcp:read")) is None
    assert decided(own, rule(DENY, "@changes")) is None


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("/src/*", "/src/a.py", ALLOW),
        ("src/*", "/src/a/b.py", ALLOW),
        ("/src/*", "/srcs/a.py", None),
        ("/src/*", "/src", None),
        ("/src/a.py", "/SRC/a.py", None),
        ("/src/\u00e9.py", "/src/e\u0301.py", None),  # the same to look at, another file
        ("*.py", "/src/a.py", ALLOW),
        ("/[ab].py", "/a.py", None),
        ("/[ab].py", "/[ab].py", ALLOW),
        ("/a?.py", "/ab.py", ALLOW),
        ("*", "/.env", ASK),
        ("/*", "/.env", ASK),
        ("/.e*", "/.env", ASK),
        ("/.env", "/.env", ALLOW),
        ("@secrets", "/.env", ALLOW),
        ("*", "/a/.ssh/config", ASK),
    ],
)
def test_an_allowance_of_paths(pattern: str, path: str, expected: RuleAction | None) -> None:
    assert decided(read(path), rule(ALLOW, "read", pattern)) is expected


def test_a_denial_of_paths_sees_through_case_links_and_directories() -> None:
    denial = rule(DENY, "read", "/private/*")
    for path in ("/private/a", "/PRIVATE/a", "/\uff50rivate/a", "/priv\u200bate/a"):
        assert decided(read(path), denial) is DENY
    assert decided(read("/link", real="/private/a"), denial, rule(ALLOW, "read", "/link")) is DENY
    assert decided(read("/link", real="/private/a"), denial) is DENY
    assert decided(read("/link", real="/other"), rule(ALLOW, "read", "/link")) is None
    assert decided(read("/", is_tree=True), denial) is DENY
    assert decided(read("/private", is_tree=True), denial) is DENY
    assert decided(read("/public", is_tree=True), denial) is None
    assert decided(read("/public", is_tree=True), rule(ALLOW, "read", "/public/*")) is ALLOW
    assert decided(read("/public", is_tree=True), rule(ALLOW, "read", "/public/*.md")) is None


@pytest.mark.parametrize(
    "path",
    [
        "/.env",
        "/a/.ENV",
        "/.env.local",
        "/.env.",
        "/．env",
        "/.e\u200bnv",
        "/a/id_rsa",
        "/k.pem",
        "/.ssh/x",
        "/b/.aws/c",
        "/.kube/config",
        "/.netrc",
    ],
)
def test_secrets_ask_in_every_spelling(path: str) -> None:
    assert is_secret(path)
    assert decided(read(path)) is ASK


@pytest.mark.parametrize(
    "path", ["/", "/env", "/.environment.md", "/.env.example", "/id_rsa.pub", "/notes/keys.md", "/a.pem.md"]
)
def test_other_files_do_not(path: str) -> None:
    assert decided(read(path)) is None


def test_a_command_that_names_a_secret_asks() -> None:
    assert decided(bash("cat .env"), rule(ALLOW, "bash", "cat *")) is ASK
    assert decided(bash("cat .env"), rule(ALLOW, "bash", "cat .env")) is ALLOW
    assert decided(bash("x && cat a/.env | y"), rule(ALLOW, "bash")) is ASK


@pytest.mark.parametrize(
    ("url", "pattern", "expected"),
    [
        ("https://docs.python.org/3/", "docs.python.org", ALLOW),
        ("https://DOCS.python.org:443/3/", "docs.python.org", ALLOW),
        ("https://docs.python.org.evil.com/", "docs.python.org", None),
        ("https://docs.python.org@evil.com/", "docs.python.org", None),
        ("https://docs.python.org:8443/", "docs.python.org", None),
        ("http://docs.python.org/", "docs.python.org", None),
        ("https://docs.python.org\\@evil.com/", "*docs.python.org*", None),
        ("https://a.python.org/x", "https://*.python.org/*", ALLOW),
        ("https://p\u0443thon.org/", "python.org", None),  # with a Cyrillic letter
        ("ftp://docs.python.org/", "docs.python.org", None),
        ("nonsense", "nonsense", None),
    ],
)
def test_addresses(url: str, pattern: str, expected: RuleAction | None) -> None:
    call = CallFacts(name="fetch_url", changes=False, subjects=(address_subject(url),))
    assert decided(call, rule(ALLOW, "fetch_url", pattern)) is expected


def test_children_inherit_what_is_taken_away() -> None:
    above = inherited(
        [
            rule(DENY, "bash", "*", RuleLevel.CLASS),
            rule(ALLOW, "bash", "git *", RuleLevel.CLASS),
            rule(ALLOW, "bash", "rm *", RuleLevel.CONVERSATION),
            rule(ASK, "bash", "git push *", RuleLevel.CONVERSATION),
        ]
    )
    everything = rule(ALLOW, "bash", level=RuleLevel.CONVERSATION)
    assert decided(bash("rm x"), everything, above=(above,)) is DENY
    assert decided(bash("git push"), everything, above=(above,)) is ASK
    assert decided(bash("git log"), everything, above=(above,)) is ALLOW
    assert decided(bash("git log"), above=(above,)) is None


@pytest.mark.parametrize(
    ("call", "pattern"),
    [
        (bash("git status -s"), "git status *"),
        (bash("ls -la"), "ls *"),
        (bash("python manage.py migrate"), "python manage.py migrate"),
        (bash("cat .env"), "cat .env"),
        (bash("git status && ls"), None),
        (bash("ls *.py"), None),
        (read("/.env"), "/.env"),
        (CallFacts(name="pay"), "*"),
        (CallFacts(name="pay", subjects=(text_subject("order 7"),)), "order 7"),
        (CallFacts(name="pay", subjects=(text_subject("order *"),)), None),
        (CallFacts(name="pay", source=Source.MCP), "*"),
    ],
)
def test_what_is_offered_for_always_is_narrow_and_would_let_the_call_run(call: CallFacts, pattern: str | None) -> None:
    made = offered(call, RuleSet(), NOW)
    assert [each.pattern for each in made] == ([] if pattern is None else [pattern])
    assert not made or decided(call, *made) is ALLOW
    assert offered(call, RuleSet(own=(rule(DENY, "*", "*", RuleLevel.SITE),)), NOW) == ()
    assert facts_from(call.to_json()) == call


@pytest.mark.parametrize("key", ["", "a b", "nowhere:x", "@other", "x" * 200, "b\u0430sh", "mcp:"])
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(ToolDeclarationInvalid):
        Permission.deny(key)


@pytest.mark.parametrize("pattern", ["", "a\nb", "x" * 1001, "a\u202eb"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ToolDeclarationInvalid):
        Permission.allow("bash", pattern)


def test_a_pattern_of_many_stars_is_quick() -> None:
    call = CallFacts(name="x", subjects=(Subject(texts=("a" * 20_000,)),))
    assert decided(call, rule(DENY, "x", "*a" * 200 + "b")) is None


def test_of_many_paths_those_are_secret_that_are_by_themselves() -> None:
    chance = random.Random(5)
    words = [
        "src",
        ".env",
        ".ENV.local",
        "x.pem",
        ".ssh",
        "id_rsa ",
        "secrets.yml.",
        ".kube",
        "config",
        "ｅｎｖ",
        ".e\u200bnv",
    ]
    paths = ["/" + "/".join(chance.choices(words, k=chance.randint(1, 3))) for _ in range(2_000)]
    assert secret_among(paths) == {path for path in paths if is_secret(path)}
    assert secret_among(["/src/a.py"]) == set()
