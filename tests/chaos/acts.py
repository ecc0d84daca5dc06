"""What people do in a chaos run, each until its turns are over: by plain clients, on pages, by published clients."""

import asyncio
import random
from typing import TYPE_CHECKING, Any

from tests.chaos import scripts
from tests.chaos.lines import Line, user_message
from tests.chaos.pages import PageTab
from tests.chaos.published import PublishedTab
from tests.chaos.waiting import wait_until

if TYPE_CHECKING:
    from tests.chaos.driver import Play

JSONObject = dict[str, Any]
SENT_MESSAGES = 8
LOST_SECONDS = 20.0
"""What a published client sent and no one has accepted after this time was on a line that was cut."""


async def with_lines(run: "Play", dice: random.Random, room: str) -> None:
    """One thing that two plain clients do."""
    kinds = [_plain, _tools, _broken, _edit, _regenerate, _stopped, _queued]
    act = dice.choices(kinds, weights=[8, 5, 2, 3, 3, 3, 2])[0]
    line, other = dice.sample(run.lines[room], 2)
    await act(run, dice, line, other)


async def _end(run: "Play", line: Line, *requests: str) -> None:
    if not await line.wait(lambda: all(r in line.ended for r in requests), seconds=run.score.turn_seconds):
        late = [request for request in requests if request not in line.ended]
        run.problems.append(f"no end of {late} in {line.room} within {run.score.turn_seconds} s")
        raise AssertionError(run.problems[-1])


async def _submit(run: "Play", line: Line, text: str, *, stopped: bool = False) -> str:
    request = await line.ask([*line.transcript[-SENT_MESSAGES:], user_message(text)])
    run.requests.append({"room": line.room, "request": request, "text": text, "stopped": stopped})
    return request


async def _plain(run: "Play", dice: random.Random, line: Line, _other: Line) -> None:
    await _end(run, line, await _submit(run, line, scripts.plain(dice, run.marker())))


async def _tools(run: "Play", dice: random.Random, line: Line, _other: Line) -> None:
    await _end(run, line, await _submit(run, line, scripts.tools(dice, run.marker())))


async def _broken(run: "Play", dice: random.Random, line: Line, _other: Line) -> None:
    await _end(run, line, await _submit(run, line, scripts.broken(dice, run.marker())))


async def _edit(run: "Play", dice: random.Random, line: Line, other: Line) -> None:
    users = [at for at, message in enumerate(line.transcript) if message["role"] == "user"]
    if not users:
        return await _plain(run, dice, line, other)
    at = dice.choice(users[-4:])
    text = scripts.plain(dice, run.marker())
    request = await line.ask([*line.transcript[max(0, at - 4) : at], user_message(text, line.transcript[at]["id"])])
    run.requests.append({"room": line.room, "request": request, "text": text, "stopped": False})
    await _end(run, line, request)
    return None


async def _regenerate(run: "Play", dice: random.Random, line: Line, other: Line) -> None:
    answers = [at for at, message in enumerate(line.transcript) if message["role"] == "assistant"]
    if not answers:
        return await _plain(run, dice, line, other)
    at = dice.choice(answers[-4:])
    run.marker()
    request = await line.ask(line.transcript[max(0, at - 4) : at], trigger="regenerate-message")
    run.requests.append({"room": line.room, "request": request, "text": None, "stopped": False})
    await _end(run, line, request)
    return None


async def _stopped(run: "Play", dice: random.Random, line: Line, other: Line) -> None:
    request = await _submit(run, line, scripts.long(dice, run.marker()), stopped=True)
    wanted = dice.randint(0, 40)
    await line.wait(lambda: line.seen.get(request, 0) >= wanted or request in line.ended, seconds=30)
    await dice.choice([line, other]).stop(request)
    await _end(run, line, request)


async def _queued(run: "Play", dice: random.Random, line: Line, other: Line) -> None:
    first = await _submit(run, line, scripts.plain(dice, run.marker()))
    second = await _submit(run, other, scripts.tools(dice, run.marker()))
    is_stopped = dice.random() < 0.4
    third = await _submit(run, line, scripts.plain(dice, run.marker()), stopped=is_stopped)
    if is_stopped:
        await line.stop(third)
    await _end(run, line, first, third)
    await _end(run, other, second)


async def on_page(run: "Play", dice: random.Random, tab: PageTab) -> None:
    """One thing that a person does in a tab of the web page. Whatever is written there arrives, sooner or later."""
    turns = await run.turns_of(tab.room)
    act = dice.choices(["write", "tools", "stop", "again", "edit", "reload"], weights=[4, 2, 2, 2, 2, 1])[0]
    text = _text(run, dice, act)
    if not await _do(run, tab, act, text):
        return
    if act != "again":
        run.requests.append(_asked(tab.room, text, by="page", stopped=act == "stop"))
    await _meddle(run, dice, tab, act)
    if not await run.all_over(tab.room, more_than=turns, seconds=run.score.turn_seconds):
        run.problems.append(f"{act} on page {tab.number} of {tab.room} led to nothing: {text!r}")


async def on_published(run: "Play", dice: random.Random, tab: PublishedTab) -> None:
    """One thing that a person does with a published client. What is lost with a line is said again another time."""
    await tab.be_ready()
    turns = await run.turns_of(tab.room)
    act = dice.choices(["write", "tools", "stop", "again", "edit", "reload"], weights=[4, 2, 2, 2, 2, 1])[0]
    text = _text(run, dice, act)
    asked = _asked(tab.room, text, by="published", stopped=act == "stop")
    if not await _do(run, tab, act, text):
        return
    if act != "again":
        run.requests.append(asked)
    await _meddle(run, dice, tab, act)

    async def is_accepted() -> bool:
        return await run.turns_of(tab.room) > turns

    asked["is_lost"] = not await wait_until(is_accepted, seconds=LOST_SECONDS)
    if not await run.all_over(tab.room, more_than=0, seconds=run.score.turn_seconds):
        run.problems.append(f"{act} with {tab.line} of {tab.room} does not end: {text!r}")


def _text(run: "Play", dice: random.Random, act: str) -> str:
    make = {"stop": scripts.long, "reload": scripts.long, "tools": scripts.tools}.get(act, scripts.plain)
    return make(dice, run.marker())


def _asked(room: str, text: str, *, by: str, stopped: bool) -> JSONObject:
    return {"room": room, "request": None, "text": text, "stopped": stopped, "by": by}


async def _do(run: "Play", tab: PageTab | PublishedTab, act: str, text: str) -> bool:
    """Begin it. False when there was nothing to do it with."""
    match act:
        case "again":
            is_done = await tab.regenerate()
        case "edit":
            is_done = await tab.edit_last(text)
        case _:
            await tab.write(text)
            is_done = True
    run.count(tab, act, is_done=is_done)
    return is_done


async def _meddle(run: "Play", dice: random.Random, tab: PageTab | PublishedTab, act: str) -> None:
    """Stop, or load the page again, in the middle."""
    if act in {"stop", "reload"}:
        await asyncio.sleep(dice.uniform(0.2, 2.0))  # people act when they like
    if act == "stop":
        run.count(tab, "press stop", is_done=await tab.stop())
    elif act == "reload":
        await tab.load()
