"""Files in each encoding and with each kind of line end, with one place in ASCII that a command changes."""

import codecs
import random
from dataclasses import dataclass

OLD, NEW = "price=7;", "price=12;"
ENCODINGS = {
    "utf-8": b"",
    "utf-8-sig": codecs.BOM_UTF8,
    "cp1252": b"",
    "cp1251": b"",
    "shift_jis": b"",
    "gb18030": b"",
    "iso-8859-2": b"",
}
WORDS = {
    "utf-8": "Größe “7,00 €” – Zoë \u00a0 naïve e\u0301 日本",
    "utf-8-sig": "Größe “7,00 €” – Zoë \u00a0 naïve 日本",
    "cp1252": "Größe “7,00 €” – Müller Café \u00a0",
    "cp1251": "Привет мир – цена ё №",
    "shift_jis": "こんにちは 世界 表 ソ 能",  # with backslashes among its bytes
    "gb18030": "价格 世界 你好",
    "iso-8859-2": "Zażółć gęślą jaźń",
}
ENDS = {"LF": "\n", "CRLF": "\r\n", "CR": "\r", "mixed": ""}


@dataclass(frozen=True, slots=True)
class EditedFile:
    """A file before and after the change."""

    name: str
    before: bytes
    after: bytes


def edited_files(seed: int) -> list[EditedFile]:
    """One file of each encoding and line end, whose words stand in another order with each seed."""
    order = random.Random(seed)
    return [_file(order, encoding, end) for encoding in ENCODINGS for end in ENDS]


def _file(order: random.Random, encoding: str, end: str) -> EditedFile:
    words = WORDS[encoding].split(" ")
    lines = [" ".join(order.sample(words, order.randint(1, len(words)))) for _ in range(order.randint(2, 6))]
    ends = [ENDS[end] or order.choice(["\n", "\r\n", "\r"]) for _ in lines]
    at = order.randrange(len(lines))
    lines[at] = f"{lines[at]} {OLD} {order.choice(words)}"
    if order.random() < 0.5:
        ends[-1] = ""
    text = "".join(line + each for line, each in zip(lines, ends, strict=True))
    codec, mark = encoding.removesuffix("-sig"), ENCODINGS[encoding]
    before = mark + text.encode(codec)
    return EditedFile(f"{encoding}-{end}.txt", before, before.replace(OLD.encode(), NEW.encode()))
