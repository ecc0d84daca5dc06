"""Bytes in texts: named where they are encoded, and nothing else is touched."""

import base64
import hashlib
import random

import pytest

from tools_app.core.files.embedded import without_data

BYTES = random.Random(1).randbytes(6_000)
RUN = base64.b64encode(BYTES).decode()
LINES = base64.encodebytes(BYTES).decode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"# Notes\n\n![plan](data:image/png;base64,{RUN})\nEnd", "# Notes\n\n![plan]([image/png, 6,016 bytes])\nEnd"),
        (
            "A data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs= and words",
            "A [image/gif, 46 bytes] and words",
        ),
        (f'{{"png": "{RUN}", "n": 1}}', '{"png": "[base64, 6,000 bytes]", "n": 1}'),
        (f"Before:\n\n{LINES}\n--\n", "Before:\n\n[base64, 6,000 bytes]\n\n--\n"),
        (LINES.replace("\n", "\\n"), "[base64, 6,000 bytes]\\n"),
    ],
    ids=["Markdown", "words behind", "JSON", "a mail", "JSON with lines"],
)
def test_encoded_bytes_are_named(text: str, shown: str) -> None:
    assert without_data(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "ACGT" * 5_000,
        BYTES.hex(),
        "\n".join(hashlib.sha256(bytes([number])).hexdigest() for number in range(200)),
        "\n".join(f"Word{number}" for number in range(5_000)),
        base64.encodebytes(BYTES[:2_000]).decode(),
        f"eyJ{RUN[:2_000]}.{RUN[:2_000]}",
        "x" * 3_999 + "\n" + ("A1b" * 1_300 + " ") * 200,
    ],
    ids=["a sequence", "hex", "digests", "words", "a certificate", "a token", "many short runs"],
)
def test_what_is_no_file_stays(text: str) -> None:
    assert without_data(text) == text
