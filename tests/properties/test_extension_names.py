"""Prefixes of extensions, for any name: one that providers accept, the same for what looks the same."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.budget import examples
from tools_app.core.extensions.naming import block_label, prefix_of, tool_name
from tools_app.core.tool import NAME_PATTERN
from tools_app.errors import ExtensionInvalid

NAMES = st.one_of(st.text(max_size=40), st.from_regex(r"[A-Za-z0-9_ .-]{1,40}", fullmatch=True))
TOOLS = st.one_of(st.text(max_size=70), st.from_regex(r"[A-Za-z0-9_-]{1,70}", fullmatch=True))


@settings(max_examples=examples(150))
@given(NAMES)
def test_a_prefix_is_letters_and_digits_with_single_underscores_between(name: str) -> None:
    try:
        prefix = prefix_of(name)
    except ExtensionInvalid:
        assert not re.search("[A-Za-z0-9]", name)
        return
    assert re.fullmatch(r"[A-Za-z0-9]+(_[A-Za-z0-9]+)*", prefix)
    assert prefix_of(prefix) == prefix
    assert prefix_of(f"--{name}--") == prefix
    assert re.sub("[^A-Za-z0-9]", "", name) == prefix.replace("_", "")


@settings(max_examples=examples(150))
@given(NAMES.filter(lambda name: re.search("[A-Za-z0-9]", name)), TOOLS)
def test_a_tool_has_a_name_that_providers_accept_or_none(name: str, tool: str) -> None:
    prefix = prefix_of(name)
    try:
        made = tool_name(prefix, tool)
    except ExtensionInvalid:
        assert not NAME_PATTERN.match(f"{prefix}_{tool}") or not re.fullmatch("[A-Za-z0-9_]+", tool)
        return
    assert NAME_PATTERN.match(made)
    assert made == f"{prefix}_{tool}"
    assert block_label(prefix, tool) == made
