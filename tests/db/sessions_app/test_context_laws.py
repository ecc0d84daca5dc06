"""A law of contexts: whatever a model does with its blocks, the prompt does not grow from turn to turn (U2.33)."""

from contextlib import suppress
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_app.context.history import MODEL
from sessions_app.context.session_context import SessionContext
from sessions_app.core.context.context_blocks import StoredSearch, StoredSkills, render
from sessions_app.core.context.context_setup import ContextSetup
from sessions_app.errors import SessionError
from sessions_app.testing import make_session
from tests.budget import examples

pytestmark = pytest.mark.django_db(transaction=True)

LIMIT = 20
texts = st.text("ab \n", max_size=60)
deeds = st.one_of(
    st.tuples(st.just("replace"), texts),
    st.tuples(st.just("append"), texts),
    st.tuples(st.sampled_from(["load", "unload"]), st.sampled_from(["tea", "gone"])),
    st.tuples(st.just("search"), texts),
    st.tuples(st.just("refresh"), st.just("")),
)


def setup(*, cached: bool) -> ContextSetup:
    made = ContextSetup().with_context("soul", provider="Kind.").with_context("memory", max_tokens=LIMIT)
    made.with_context("skills", provider=StoredSkills()).with_context("facts", provider=StoredSearch())
    return made.with_cached_prompt() if cached else made


async def do(context: SessionContext, deed: tuple[str, str]) -> None:
    match deed:
        case ("replace", text):
            await context.replace("memory", text, by=MODEL)
        case ("append", text):
            await context.append("memory", text, by=MODEL)
        case ("load", key):
            await context.load("skills", key)
        case ("unload", key):
            await context.unload("skills", key)
        case ("search", query):
            await context.search("facts", query)
        case _:
            await context.refresh_system_prompt()


async def live(context: SessionContext, done: list[tuple[str, str]]) -> list[str]:
    """The prompts of the turns in which all this is done."""
    await context.set_entry("skills", "# Tea", key="tea")
    prompts = []
    for deed in done:
        with suppress(SessionError):  # what does not fit is refused
            await do(context, deed)
        prompts.append(await context.system_prompt())
        assert await context.system_prompt() == prompts[-1]  # a turn that changes nothing changes nothing
    return prompts


@settings(max_examples=examples(20), deadline=None, suppress_health_check=list(HealthCheck))
@given(done=st.lists(deeds, min_size=1, max_size=8), cached=st.booleans())
def test_the_prompt_is_made_of_what_the_blocks_hold_and_of_nothing_else(
    done: list[tuple[str, str]], cached: bool
) -> None:
    context = SessionContext(make_session().pk, setup(cached=cached))
    prompts = async_to_sync(live)(context, done)
    blocks: Any = async_to_sync(context.blocks)()
    held = next(block.content for block in blocks if block.label == "memory")
    frame = len(render(blocks)) - len(held)
    few = len("100% — 20/20\n") - len("0% — 0/20")  # the head tells how full a block is
    assert all(len(prompt) <= frame + 4 * LIMIT + few for prompt in prompts)  # a token has four characters at most
    assert async_to_sync(context.refresh_system_prompt)() == render(blocks)
