"""Sentences about programs that ended or are silent: made of what published servers print to their standard error."""

import pytest

from tools_app.core.mcp.last_words import ending, slow_start, telling_line, without_secrets

NODE_STACK = """\
(node:812) [DEP0040] DeprecationWarning: The `punycode` module is deprecated. Please use a userland alternative instead.
Error: airtable: No API key provided. Set it in the `AIRTABLE_API_KEY` environment variable
    at new AirtableService (file:///srv/dist/airtableService.js:11:19)
    at file:///srv/dist/main.js:59:3
"""
PYTHON_STACK = """\
/lib/authlib/jwt.py:10: AuthlibDeprecationWarning: authlib.jose module is deprecated, please use joserfc instead.
  from ._compat import httpx2
Traceback (most recent call last):
  File "/srv/server.py", line 58, in __init__
    raise ValueError("Valid ALLOWED_DIR is required")
ValueError: Valid ALLOWED_DIR is required
"""
TWO_LINES = """\
Error: A Brave API key is required via --brave-api-key, BRAVE_API_KEY, --brave-api-key-file, or BRAVE_API_KEY_FILE.
Invalid configuration
"""
USAGE = """\
Error: No access token was provided.
Usage: @sentry/mcp-server [--access-token=<token>] [--host=<host>]
       @sentry/mcp-server auth [login|logout|status]
Environment variables:
  OPENAI_API_KEY          OpenAI API key for AI-powered search tools
Examples:
  @sentry/mcp-server --access-token=TOKEN --agent-provider=openrouter
"""
JSON_LOG = """\
{"source": "environment variables", "event": "Environment configuration loaded", "level": "info"}
{"error": "PROMETHEUS_URL environment variable is not set", "event": "Missing required configuration"}
{"event": "Environment setup failed, exiting", "level": "error"}
"""
COLOURED = """\
\x1b[31m\x1b[39m
   Stripe API key not provided. Please pass --api-key=$KEY or set the STRIPE_SECRET_KEY environment variable.
\x1b[0m\x1b[1m\x1b[31merror\x1b[0m: Uncaught Error: Stripe API key not provided. Set STRIPE_SECRET_KEY.
    at \x1b[0m\x1b[1mparseArgs\x1b[0m (\x1b[36mfile:///srv/cli.js\x1b[0m:34:15)
    \x1b[33minfo:\x1b[0m This program assigned to __proto__.
    \x1b[36mhint:\x1b[0m If this caused the error, run again.
"""
RETRYING = """\
[Redis Error] Error: connect ECONNREFUSED 127.0.0.1:6379
[Redis Error] Stack: Error: connect ECONNREFUSED 127.0.0.1:6379
    at TCPConnectWrap._afterConnect [as oncomplete] (node:net:1)
[Redis Retry] Next attempt in 4000ms
"""
BOX = "┌────┐\n│ a thought │\n└────┘\n"


@pytest.mark.parametrize(
    ("printed", "line"),
    [
        (NODE_STACK, "Error: airtable: No API key provided. Set it in the `AIRTABLE_API_KEY` environment variable"),
        (PYTHON_STACK, "ValueError: Valid ALLOWED_DIR is required"),
        (TWO_LINES, TWO_LINES.splitlines()[0]),
        (USAGE, "Error: No access token was provided."),
        (JSON_LOG, "PROMETHEUS_URL environment variable is not set"),
        (
            COLOURED,
            "error: Uncaught Error: Stripe API key not provided. Set STRIPE_SECRET_KEY.",
        ),
        (RETRYING, "[Redis Error] Stack: Error: connect ECONNREFUSED 127.0.0.1:6379"),
        (BOX, "│ a thought │"),
        ("KeyError: 'DB_URL'\n", "KeyError: 'DB_URL'"),
        ("Server ready\nListening\n", "Listening"),
        ("", ""),
        ("\n \n---\n", ""),
        ('{"not": "closed\n', '{"not": "closed'),
        ('{"level": 30}\n', '{"level": 30}'),
        ("bad \x07 sound\n", "bad sound"),
        ("x" * 1_000, "x" * 300),
    ],
)
def test_the_line_that_says_what_is_missing_is_found(printed: str, line: str) -> None:
    assert telling_line(printed) == line


@pytest.mark.parametrize(
    ("printed", "given", "words"),
    [
        (PYTHON_STACK, (), "required. Such variables are given with the server: ALLOWED_DIR."),
        (PYTHON_STACK, ("ALLOWED_DIR",), "ended: ValueError: Valid ALLOWED_DIR is required."),
        (TWO_LINES, (), "given with the server: BRAVE_API_KEY, BRAVE_API_KEY_FILE."),
        (RETRYING, (), "ECONNREFUSED 127.0.0.1:6379. It could not reach an address that it needs."),
        ("done!\n", (), "The program of the server ended: done!"),
    ],
)
def test_an_ending_is_one_that_a_person_can_act_on(printed: str, given: tuple[str, ...], words: str) -> None:
    assert str(ending(printed, given)).endswith(words)


def test_a_program_that_said_nothing_has_no_reason() -> None:
    assert ending("", ()) is None


def test_a_silent_program_is_said_to_be_slow_and_its_trouble_is_repeated() -> None:
    assert str(slow_start("Starting\n", 60.0)) == "The server did not answer within 60 s."
    assert str(slow_start(RETRYING, 60.0)).endswith("within 60 s. It printed: " + telling_line(RETRYING))


def test_secrets_are_left_out_and_what_is_none_stays() -> None:
    assert without_secrets("key abcdef-1 at port 1", ("abcdef-1", "1", "")) == "key … at port 1"
    assert without_secrets("abcdefgh abcd", ("abcd", "abcdefgh")) == "… …"
