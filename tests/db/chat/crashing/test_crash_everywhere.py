"""`crash_everywhere` lets sound agents pass, and catches what is done twice, lost or left behind."""

from collections.abc import Iterator
from typing import Any

import pytest

from chat.agents import Assistant
from chat.crashing.everywhere import CrashEverywhere
from chat.instance.handle import AgentHandle

from .shop import DONE, KEYED, FickleShop, NoisyShop, Shop, TwiceShop, effects, empty

pytestmark = pytest.mark.asyncio
TWO_CALLS = 'say: First.\ncall tool add {"a": 1, "b": 2} id=one\ncall tool add {"a": 3, "b": 4} id=two\nsay: {results}.'


@pytest.fixture(autouse=True)
def _empty_shop() -> Iterator[None]:
    empty()
    yield
    empty()


def keys(crashes: Any) -> list[str]:
    return [point.key for points in crashes.points for point in points]


@pytest.mark.long
async def test_the_served_agent_passes(crash_everywhere: CrashEverywhere) -> None:
    crashes = await crash_everywhere(Assistant, "stream 12 words")
    assert {"begin", "chunk:start", "chunk:text-delta", "ending", "model:0", "chunk:finish"} <= set(keys(crashes))


async def test_a_tool_is_crashed_before_inside_and_after(crash_everywhere: CrashEverywhere) -> None:
    crashes = await crash_everywhere(Shop, TWO_CALLS, effects=effects)
    wanted = {
        "before:model:0",
        "model:0",
        "tool:add:one:begins",
        "tool:add:one:returned",
        "before:call:one",
        "call:one",
    }
    assert wanted <= set(keys(crashes))


@pytest.mark.long
async def test_several_turns_and_what_code_does_between_them(crash_everywhere: CrashEverywhere) -> None:
    async def note(handle: AgentHandle) -> None:
        await handle.add_messages("by the way")

    crashes = await crash_everywhere(Shop, "", "say: One.", note, "say: Two.", effects=effects)
    assert keys(crashes).count("begin") == 2


@pytest.mark.long
@pytest.mark.parametrize("tool", ["charge_keyed", "charge_once", "refund"])
async def test_effects_that_are_keyed_or_never_repeated_pass(crash_everywhere: CrashEverywhere, tool: str) -> None:
    await crash_everywhere(Shop, f'call tool {tool} {{"amount": 5}} id=one\nsay: {{result}}.', effects=effects)
    assert DONE or KEYED


@pytest.mark.long
async def test_an_approved_action_is_done_once(crash_everywhere: CrashEverywhere) -> None:
    script = 'call tool refund_asked {"amount": 5} id=one\nsay: It says {result}.'
    crashes = await crash_everywhere(Shop, script, effects=effects)
    assert keys(crashes).count("begin") == 2  # the second turn is that of the approval
    assert "tool:refund_asked:one:returned" in keys(crashes)


@pytest.mark.long
async def test_a_rejected_action_is_never_done(crash_everywhere: CrashEverywhere) -> None:
    script = 'call tool refund_asked {"amount": 5} id=one\nsay: It says {result}.'
    await crash_everywhere(Shop, script, effects=effects, approve=False)
    assert DONE == []


@pytest.mark.long
async def test_clients_and_waits_are_answered_after_the_crash(crash_everywhere: CrashEverywhere) -> None:
    script = "call tool where {} id=one\nsay: It says {result}."
    await crash_everywhere(Shop, script, effects=effects, client_results={"where": "here"})
    script = 'call tool ring {"name": "bob"} id=one\nsay: It says {result}.'
    await crash_everywhere(Shop, script, effects=effects, waits={"door": "come in"})


@pytest.mark.long
async def test_a_second_crash_follows_the_first(crash_everywhere: CrashEverywhere) -> None:
    crashes = await crash_everywhere(Shop, "say: Hi.", effects=effects, pairs=True)
    assert {len(points) for points in crashes.points} == {1, 2}


@pytest.mark.long
async def test_parts_are_together_the_whole(crash_everywhere: CrashEverywhere) -> None:
    whole = await crash_everywhere(Shop, "say: Hi.", effects=effects)
    parts = [await crash_everywhere(Shop, "say: Hi.", effects=effects, part=(number, 3)) for number in range(3)]
    assert sorted(map(str, whole.points)) == sorted(str(points) for part in parts for points in part.points)
    with pytest.raises(ValueError, match="part 3 of 3"):
        await crash_everywhere(Shop, "say: Hi.", effects=effects, part=(3, 3))


async def test_a_tool_that_charges_twice_is_named_with_the_crash_and_what_to_do(
    crash_everywhere: CrashEverywhere,
) -> None:
    with pytest.raises(AssertionError) as caught:
        await crash_everywhere(Shop, 'call tool charge {"amount": 5} id=one\nsay: {result}.', effects=effects)
    text = str(caught.value)
    assert "when tool 'charge' (call one) had returned, before its result was recorded" in text
    assert "Effect charged 5 is there 2 times, undisturbed 1." in text
    assert "Tool 'charge' ran 2 times, undisturbed 1." in text
    assert "context.idempotency_key" in text
    assert "when tool 'charge' (call one) was about to run" not in text  # there it has run once


async def test_a_hook_that_writes_twice_is_caught(crash_everywhere: CrashEverywhere) -> None:
    with pytest.raises(AssertionError, match=r"There are \d messages, undisturbed 3"):
        await crash_everywhere(TwiceShop, "say: Hi.", effects=effects)


async def test_a_hook_that_reports_twice_is_caught(crash_everywhere: CrashEverywhere) -> None:
    with pytest.raises(AssertionError, match="Effect answered completed is there 2 times"):
        await crash_everywhere(NoisyShop, "say: Hi.", effects=effects)


async def test_an_answer_that_depends_on_the_attempt_is_caught(crash_everywhere: CrashEverywhere) -> None:
    with pytest.raises(AssertionError, match="attempt 2"):
        await crash_everywhere(FickleShop, "echo system", effects=effects)


async def test_what_differs_without_a_crash_is_no_fault_of_crashes(crash_everywhere: CrashEverywhere) -> None:
    seen = iter(range(1000))
    with pytest.raises(AssertionError, match="Two undisturbed runs of this conversation differ"):
        await crash_everywhere(Shop, "say: Hi.", effects=lambda: range(next(seen) ** 2))
