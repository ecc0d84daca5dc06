"""Templates of slash commands: what stands where, and which names there cannot be."""

import pytest

from chat.core.commands import Command, fill, typed_command
from chat.errors import InputInvalid


@pytest.mark.parametrize(
    ("template", "arguments", "text"),
    [
        ("Look.", "", "Look."),
        ("Look.", "at that", "Look.\n\nat that"),
        ("Mend $ARGUMENTS now", 'the "red" one', 'Mend the "red" one now'),
        ("$1 before $2", "a b c", "a before b c"),
        ("$2 after $1", "a b c", "b c after a"),
        ("$1 and $1", "a b", "a b and a b"),
        ("$1, $3", "a b c d", "a, c d"),
        ("$1-$2", "'a b' \"c d\"", "a b-c d"),
        ("$1|$2", "a", "a|"),
        ("$0 $x $$", "a", "$0 $x $$\n\na"),
        ("$1", "$2 $ARGUMENTS", "$2 $ARGUMENTS"),  # what is typed is not filled in again
    ],
)
def test_words_are_put_into_a_template(template: str, arguments: str, text: str) -> None:
    assert fill(Command("look", template), arguments).text == text


def test_scripts_are_named_in_the_text_and_quote_what_was_typed() -> None:
    filled = fill(Command("look", "See !`grep -n $1 /a` and !`ls`: $ARGUMENTS"), "$(rm) !`id` x")
    assert filled.scripts == ("grep -n '$(rm)' '!`id`' x /a", "ls")
    assert filled.text.startswith("See `grep -n ")
    assert filled.text.endswith("and `ls` (its output is below): $(rm) !`id` x")


def test_a_command_is_known_by_its_whole_name() -> None:
    commands = [Command("test", "a"), Command("test-all", "b")]
    found = [typed_command(text, commands) for text in ("/test", " /test-all  a\nb ", "/tests", "say /test", "/")]
    assert [each and (each[0].template, each[1]) for each in found] == [("a", ""), ("b", "a\nb"), None, None, None]


@pytest.mark.parametrize("name", ["", "Test", "1", "a b", "undo", "compact", "always", "a" * 41])
def test_a_name_that_cannot_be_typed_or_is_taken_is_refused(name: str) -> None:
    with pytest.raises(InputInvalid):
        Command(name, "a")
