"""No command of a script changes a byte that it was not asked to change, whatever encoding a file has."""

import random
import re
from collections.abc import Callable

import pytest

from tests.edited_files import NEW, OLD, edited_files
from tests.unit.tools_app.shell.conftest import Shell
from tools_app.workspace.stores.memory import MemoryWorkspace

LETTERS = "Müller;7,00 €\nSchön;8,00\r\nplain;1\n“Größe”;Łódź 😀\n"


def lines_of_any_bytes() -> bytes:
    """Each byte alone, characters that are cut or too long, halves of pairs, and lines at random; no NUL."""
    odd = [
        b"\xc3",
        b"\xe2\x82",
        b"\xf0\x9f\x98",
        b"\xc0\xaf",
        b"\xed\xa0\xbd\xed\xb8\x80",
        b"\xf4\x90\x80\x80",
        b"\x80\x80",
    ]
    single = [bytes([each]) for each in range(1, 256) if each != 10]
    chance = random.Random(7)
    lines = [b"".join(chance.choices([*single, *odd, "é😀ß".encode()], k=chance.randrange(12))) for _ in range(200)]
    return b"\n".join([*single, *odd, *lines]) + b"\n"


FILES = {
    "cp1252": LETTERS.replace("Łódź 😀", "Lodz").encode("cp1252"),
    "latin-1": "M\xfcller;7,00\n\xe9t\xe9;plain\n".encode("latin-1"),
    "utf-8 with a mark": LETTERS.encode("utf-8-sig"),
    "utf-8": LETTERS.encode(),
    "short": "é\nü;7,00\nplain é\n".encode(),  # whose letters have one byte in Latin-1
    "utf-16": LETTERS.encode("utf-16").replace(b"\0", b"\1") + b"\n",  # a variable holds no NUL, in bash neither
    "any bytes": lines_of_any_bytes(),
}


def each_line(change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda data: b"".join(map(change, data.splitlines(keepends=True) if b"\r" not in data else _lines(data)))


def _lines(data: bytes) -> list[bytes]:
    return re.findall(rb"[^\n]*\n|[^\n]+$", data)


COMMANDS: dict[str, Callable[[bytes], bytes]] = {
    "sed 's/7,00/9,00/' a": each_line(lambda line: line.replace(b"7,00", b"9,00", 1)),
    "cp a c; sed -i 's/7,00/9,00/' c; cat c": each_line(lambda line: line.replace(b"7,00", b"9,00", 1)),
    "grep -v plain a": lambda data: b"".join(line for line in _lines(data) if b"plain" not in line),
    "head -n 3 a": lambda data: b"".join(_lines(data)[:3]),
    "tail -n 2 a": lambda data: b"".join(_lines(data)[-2:]),
    "tac a": lambda data: b"".join(_lines(data)[::-1]),
    "tr ';' ',' < a": lambda data: data.replace(b";", b","),
    "awk '{print $0}' a": lambda data: data,
    "cat a | tee c | cat": lambda data: data,
    "ls a | xargs cat": lambda data: data,
    "x=$(cat a); printf '%s\\n' \"$x\"": lambda data: data.rstrip(b"\n") + b"\n",
    "while IFS= read -r x; do printf '%s\\n' \"$x\"; done < a": lambda data: data,
    "cat a | while IFS= read -r x; do printf '%s\\n' \"$x\"; done": lambda data: data,
    "mapfile -t x < a; printf '%s\\n' \"${x[@]}\"": lambda data: data,
    'cat <<< "$(cat a)"': lambda data: data.rstrip(b"\n") + b"\n",
    "base64 a | base64 -d": lambda data: data,
    "read -r x <<< 'é'; echo \"$x\"": lambda _data: "é\n".encode(),
    'read -r x <<END\né\nEND\necho "$x"': lambda _data: "é\n".encode(),
    "echo 'é' | while read -r x; do echo \"$x\"; done": lambda _data: "é\n".encode(),
    "awk 'BEGIN { \"echo é\" | getline x; print x }'": lambda _data: "é\n".encode(),
    'x=é; echo "${x}ü"; for y in ä ö; do echo $y; done': lambda _data: "éü\nä\nö\n".encode(),
    "printf '%s' \"$(head -n 1 a)\"": lambda data: _lines(data)[0].rstrip(b"\n"),
}


@pytest.mark.parametrize("name", FILES)
async def test_bytes_stay_what_they_are(workspace: MemoryWorkspace, bash: Shell, name: str) -> None:
    await workspace.write_file("/a", FILES[name])
    done = await bash("\n".join(f"{{ {command}; }} > /out{number}" for number, command in enumerate(COMMANDS)))
    assert done["exitCode"] == 0, done
    for number, (command, expected) in enumerate(COMMANDS.items()):
        assert await workspace.read_bytes(f"/out{number}") == expected(FILES[name]), command
    assert await workspace.read_bytes("/a") == FILES[name]


async def test_lines_are_sorted_and_numbered_as_they_are(workspace: MemoryWorkspace, bash: Shell) -> None:
    data = FILES["any bytes"]
    await workspace.write_file("/a", data)
    await bash("sort a > sorted; nl -ba a > numbered; fold -w 400 a > folded")
    assert sorted(_lines(await workspace.read_bytes("/sorted") or b"")) == sorted(_lines(data))
    assert re.sub(rb"(?m)^ *\d+\t", b"", await workspace.read_bytes("/numbered") or b"") == data
    assert await workspace.read_bytes("/folded") == data


async def test_bytes_are_written_as_they_are_asked_for(workspace: MemoryWorkspace, bash: Shell) -> None:
    await bash("printf '\\xfc\\x80' > a; printf 'ü😀' >> a; x=$(cat a); printf '%s' \"${x}\" > b")
    assert await workspace.read_bytes("/a") == b"\xfc\x80" + "ü😀".encode()
    assert await workspace.read_bytes("/b") == b"\xfc\x80" + "ü😀".encode()


async def test_what_people_and_models_read_has_no_halves_of_characters(workspace: MemoryWorkspace, bash: Shell) -> None:
    await workspace.write_file("/a", b"M\xfcller\n")
    done = await bash("cat a; cat a >&2")
    assert "\ufffd" not in (await bash("echo é; echo é >&2"))["stdout"]
    for stream in ("stdout", "stderr"):
        assert done[stream].encode()  # there are no halves of pairs in it
        assert re.fullmatch("M.ller\n", done[stream])


COPYING = "cat {0} > copies/{0}; cp {0} copied/{0}; tee teed/{0} < {0} > /dev/null; cat {0} >> {0}.log"


@pytest.mark.parametrize("seed", range(3))
async def test_a_command_changes_the_place_it_was_asked_to_and_no_other_byte(
    workspace: MemoryWorkspace, bash: Shell, seed: int
) -> None:
    files = edited_files(seed)
    for file in files:
        await workspace.write_file(f"/{file.name}", file.before)
    lines = [COPYING.format(file.name) for file in files]
    done = await bash(f"mkdir copies copied teed\n{chr(10).join(lines)}\nsed -i 's/{OLD}/{NEW}/' *.txt")
    assert (done["exitCode"], done["stderr"]) == (0, "")
    for file in files:
        for path in (f"/copies/{file.name}", f"/copied/{file.name}", f"/teed/{file.name}", f"/{file.name}.log"):
            assert await workspace.read_bytes(path) == file.before, path
        assert await workspace.read_bytes(f"/{file.name}") == file.after, file.name
