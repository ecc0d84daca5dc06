"""`agent_chat` against a running installation: on a terminal, on a pipe, and where no worker is."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from tests.acceptance.devex.terminal import Terminal
from tests.acceptance.product import ROOT, Product

COMMAND = [sys.executable, "manage.py", "agent_chat", "assistant", "--user", "ann"]


@pytest.fixture
def sit_at_terminal() -> Iterator[Callable[..., Terminal]]:
    sitting: list[Terminal] = []

    def start(product: Product, *words: str) -> Terminal:
        product.person("ann")
        sitting.append(Terminal([*COMMAND, *words], cwd=ROOT, environ=product.environ))
        sitting[-1].wait_for(r"\n> ")
        return sitting[-1]

    yield start
    for terminal in sitting:
        terminal.close()


def through_pipe(product: Product, lines: str, *words: str) -> "subprocess.CompletedProcess[str]":
    product.person("ann")
    return subprocess.run(
        [*COMMAND, *words],
        cwd=ROOT,
        env=product.environ,
        input=lines,
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )


@pytest.mark.smoke
def test_an_answer_streams_onto_the_terminal(shared_product: Product, sit_at_terminal: Callable[..., Terminal]) -> None:
    terminal = sit_at_terminal(shared_product, "--name", "streams")
    terminal.keys("stream 60 words at 20/s\r")
    first = terminal.wait_for(r"at 20/s\n(\w+ ){5}")
    whole = terminal.wait_for(r"\n> .*\n> ")
    answer = whole.split("at 20/s\n")[1].split("\n> ")[0]
    assert len(answer.split()) == 60
    assert answer not in first  # it was shown while it came
    terminal.keys("\x04")
    assert terminal.end() == 0


def test_reasoning_is_dimmed_and_a_tool_call_is_a_line(
    shared_product: Product, sit_at_terminal: Callable[..., Terminal]
) -> None:
    terminal = sit_at_terminal(shared_product, "--name", "tools")
    terminal.keys("reason: Let me see.  \r")
    terminal.wait_for(r"\n> .*\n> ")
    assert "\x1b[2mLet me see." in terminal.raw
    terminal.keys("call tool current_time {}\r")
    screen = terminal.wait_for(r"⚙[^\n]*\n.*\n> ")
    assert "⚙ current_time {} → " in screen
    terminal.keys("/quit\r")
    assert terminal.end() == 0


def test_ctrl_c_stops_the_answer_and_the_next_one_leaves(
    shared_product: Product, sit_at_terminal: Callable[..., Terminal]
) -> None:
    terminal = sit_at_terminal(shared_product, "--name", "stops")
    terminal.keys("stream 1000 words at 20/s\r")
    terminal.wait_for(r"at 20/s\n(\w+ ){5}")
    terminal.keys("\x03")
    screen = terminal.wait_for(r"\(stopped\)\n> ", seconds=10)
    assert len(screen.split()) < 500
    terminal.keys("say: Still here.\r")
    terminal.wait_for(r"\nStill here\.\n> ")
    time.sleep(0.5)  # readline shows its prompt a moment before it listens for signals
    terminal.keys("\x03")
    assert terminal.end() == 0


@pytest.mark.smoke
def test_a_failed_turn_is_reported_and_the_sitting_goes_on(
    shared_product: Product, sit_at_terminal: Callable[..., Terminal]
) -> None:
    terminal = sit_at_terminal(shared_product, "--name", "fails")
    terminal.keys("error 401\r")
    terminal.wait_for(r"error: [^\n]+\n> ")
    terminal.keys("/clear\r")
    terminal.wait_for("The conversation is empty")
    terminal.keys("say: Well.\r")
    terminal.wait_for(r"\nWell\.\n> ")


def test_older_messages_are_summarised(shared_product: Product, sit_at_terminal: Callable[..., Terminal]) -> None:
    terminal = sit_at_terminal(shared_product, "--name", "long")
    terminal.keys("/summarize\r")
    terminal.wait_for("There is nothing to summarise yet")
    for number in range(4):
        terminal.keys(f"say: Answer {number}, {'which takes its time ' * 4}.\r")
        terminal.wait_for(rf"\nAnswer {number},[^>]+\n> ")
    terminal.keys("/compact keep the numbers\r")
    terminal.wait_for("Older messages were summarised")
    terminal.keys("say: On we go.\r")
    terminal.wait_for(r"\nOn we go\.\n> ")


def test_a_pipe_gets_answers_and_an_exit_code(shared_product: Product) -> None:
    done = through_pipe(shared_product, "say: One.\nsay: Two.\n", "--name", "pipe")
    assert (done.returncode, done.stdout, done.stderr) == (0, "One.\nTwo.\n", "")
    failed = through_pipe(shared_product, "error 401\nsay: never\n", "--name", "pipe")
    assert failed.returncode == 1
    assert failed.stdout == ""
    assert failed.stderr.count("\n") == 1
    assert failed.stderr.startswith("CommandError: ")


def test_no_worker_is_reported_and_inline_does_without(
    make_product: Callable[..., Product], sit_at_terminal: Callable[..., Terminal]
) -> None:
    product = make_product(webs=0, workers=0)
    terminal = sit_at_terminal(product)
    terminal.keys("say: Hello.\r")
    terminal.wait_for(r"no worker has taken this up for 4 s.*--inline", seconds=15)
    terminal.keys("\x03")
    terminal.wait_for(r"\(stopped\)\n> ", seconds=10)
    terminal.keys("\x04")
    assert terminal.end() == 0
    assert through_pipe(product, "say: Hello.\n", "--inline", "--name", "inline").stdout == "Hello.\n"
    product.redis.kill()
    again = through_pipe(product, "say: Without Redis.\n", "--inline", "--name", "inline")
    assert (again.returncode, again.stdout, again.stderr) == (0, "Without Redis.\n", "")


def test_ctrl_c_stops_an_answer_given_inline(
    make_product: Callable[..., Product], sit_at_terminal: Callable[..., Terminal]
) -> None:
    terminal = sit_at_terminal(make_product(webs=0, workers=0), "--inline")
    terminal.keys("stream 1000 words at 20/s\r")
    terminal.wait_for(r"at 20/s\n(\w+ ){5}")
    terminal.keys("\x03")
    terminal.wait_for(r"\(stopped\)\n> ", seconds=10)
    terminal.keys("\x04")
    assert terminal.end() == 0
