"""Tells the encoding of a text from its bytes, by strict rules, and keeps it. Pure.

Marks at the beginning (BOM) and UTF-8 are certain; then counts what a web page, XML or source of Python declares of
itself, if its bytes agree. Windows-1252, which says nothing of itself, is assumed where the
bytes read as words of it, and that it was assumed is always reported. Whatever has another encoding is no text until
a caller names it. What is decoded here and encoded again is the same bytes.
"""

import codecs
import re
from dataclasses import dataclass
from typing import Final

from tools_app.core.files.failures import failed
from tools_app.errors import FileFailed

HEAD_BYTES: Final = 64 * 1024
UTF_8: Final = "UTF-8"
_CONTROLS: Final = bytes(sorted(set(range(0x20)) - set(b"\t\n\r\f\x1b\x08")))
_UNDEFINED: Final = b"\x81\x8d\x8f\x90\x9d"
_WORDS: Final = re.compile(rb"[A-Za-z]*[\x80-\xff][A-Za-z\x80-\xff]*")
_INNER_SIGNS: Final = re.compile(rb"(?<=[A-Za-z])[\x82\x84\x87\x8b\x93\x94\x99\x9b](?=[a-z])")
"""Quotes that only open, daggers and the like within a word: letters of the DOS or of the old Mac."""
_MAX_WORDS: Final = 20_000
MAX_NAMED: Final = 5
"""Characters that an error names."""
_DECLARED: Final = re.compile(
    rb"<meta\b[^>]{0,300}?\bcharset\s*=\s*[\"']?\s*([-\w.:]{2,40})"
    rb"|\A\s*<\?xml\b[^>]{0,100}?\bencoding\s*=\s*[\"']([-\w.]{2,40})"
    rb"|\A(?:[^\n]*\n)?[ \t\f]*#[^\n]{0,80}?coding[:=][ \t]*([-\w.]{2,40})",
    re.IGNORECASE,
)
"""What a text says of its own encoding: web pages, XML, source of Python."""
_DECLARED_WITHIN: Final = 4096
_OF_MARKS: Final = (
    (codecs.BOM_UTF8, "UTF-8 with BOM", "utf-8"),
    (codecs.BOM_UTF32_LE, "UTF-32 LE with BOM", "utf-32-le"),
    (codecs.BOM_UTF32_BE, "UTF-32 BE with BOM", "utf-32-be"),
    (codecs.BOM_UTF16_LE, "UTF-16 LE with BOM", "utf-16-le"),
    (codecs.BOM_UTF16_BE, "UTF-16 BE with BOM", "utf-16-be"),
)
_SHORT: Final = {"utf-8": "utf-8-sig", "utf-16-le": "utf-16", "utf-32-le": "utf-32"}
_NAMED: Final = frozenset(
    ["utf-8", "utf-16-le", "utf-16-be", "ascii", "cp437", "cp850", "cp852", "cp866", "koi8-r", "koi8-u", "mac-roman"]
    + [f"iso8859-{number}" for number in (*range(1, 11), 13, 14, 15, 16)]
    + [f"cp125{number}" for number in range(9)]
    + ["shift_jis", "cp932", "euc_jp", "euc_kr", "cp949", "gbk", "gb18030", "big5", "tis-620"]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """An encoding of a text. `mark`: the bytes before it; `is_assumed`: nothing in the bytes says that it is this one.

    `strays`: bytes within UTF-8 that are none of it. They are halves of pairs in the text, and themselves again later.
    """

    name: str = UTF_8
    codec: str = "utf-8"
    mark: bytes = b""
    is_assumed: bool = False
    strays: int = 0

    def decode(self, data: bytes, *, path: str) -> str:
        """The text, without the mark. Errors: `FileFailed` (`EILSEQ`) for bytes that are none of it."""
        try:
            return data.removeprefix(self.mark).decode(self.codec, self._errors)
        except UnicodeDecodeError as error:
            raise failed("EILSEQ", path, f"byte {error.start} is no text in {self.name}") from error

    def encode(self, text: str, *, path: str) -> bytes:
        """The bytes of a text, with the mark. Errors: `FileFailed` (`EILSEQ`), which names what cannot be written."""
        try:
            return self.mark + text.removeprefix("\ufeff" if self.mark else "").encode(self.codec, self._errors)
        except UnicodeEncodeError as error:
            words = f"{self.name}, the encoding of the file, does not have {self.missing(text)}"
            raise failed("EILSEQ", path, f"{words}: convert it to UTF-8 first") from error

    def missing(self, text: str) -> str:
        """The characters of a text that the encoding does not have, each once, as `'→' (U+2192)`; the first five."""
        found = [char for char in dict.fromkeys(text) if not self._has(char)]
        more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
        return ", ".join(f"{char!r} (U+{ord(char):04X})" for char in found[:MAX_NAMED]) + more

    def _has(self, char: str) -> bool:
        try:
            char.encode(self.codec, self._errors)
        except UnicodeEncodeError:
            return False
        return True

    def check(self, data: bytes, text: str, *, path: str) -> None:
        """Errors: `FileFailed` (`EILSEQ`) where the text of these bytes gives others, as in a few encodings."""
        if self.encode(text, path=path) != data:
            raise failed("EILSEQ", path, f"its bytes would not stay the same in {self.name}")

    def decoder(self) -> codecs.IncrementalDecoder:
        """Decodes pieces of a text for being shown; what cannot be decoded is a replacement character."""
        return codecs.getincrementaldecoder(self.codec)("replace")

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to report."""
        return self.name == UTF_8 and not self.strays

    @property
    def description(self) -> str:
        """The encoding in one line, for models and people."""
        if self.strays:
            return f"{UTF_8} except for {self.strays} bytes (shown as \N{REPLACEMENT CHARACTER}, kept as they are)"
        return f"{self.name} (assumed: its bytes do not say)" if self.is_assumed else self.name

    @property
    def _errors(self) -> str:
        return "surrogateescape" if self.codec == "utf-8" else "strict"


PLAIN: Final = Encoding()
WINDOWS: Final = Encoding(name="Windows-1252", codec="cp1252", is_assumed=True)


def detected(data: bytes) -> Encoding | None:
    """The encoding of a text; `None` for what is no text, or in an encoding that cannot be recognised."""
    for mark, name, codec in _OF_MARKS:
        if data.startswith(mark):
            found = Encoding(name=name, codec=codec, mark=mark)
            if _is_text(data, found):
                return found
    if b"\0" in data:
        return next((each for each in _UTF_16 if _is_utf_16(data, each)), None)
    strays, characters = _strays(data)
    if not strays:
        return PLAIN
    declared = _declared(data)
    if declared is not None:
        return declared
    if characters < strays and _is_windows(data):
        return WINDOWS
    is_mostly_text = characters >= strays or strays * 10 <= len(data)
    return Encoding(strays=strays) if is_mostly_text and not has_controls(data) else None


def detected_head(head: bytes, *, is_whole: bool = False) -> Encoding | None:
    """Do as `detected` with the first bytes of a longer file, whose last character may be cut."""
    if is_whole:
        return detected(head)
    found = [each for cut in range(4) if (each := detected(head[: len(head) - cut])) is not None]
    certain = [each for each in found if not each.strays and not each.is_assumed]
    return next(iter([*certain, *found]), None)


def named(name: str) -> Encoding:
    """An encoding by its name, as `windows-1251` or `UTF-16 LE with BOM`. Errors: `FileFailed` (`EINVAL`)."""
    wanted = name.strip().lower()
    for mark, known, codec in _OF_MARKS:
        if wanted in {known.lower(), _SHORT.get(codec, "")}:
            return Encoding(name=known, codec=codec, mark=mark)
    try:
        codec = codecs.lookup(wanted).name
    except (LookupError, ValueError):
        codec = ""
    if codec not in _NAMED:
        raise failed("EINVAL", "/", f"{name[:50]!r} is no encoding of texts that is known here, as UTF-8 is")
    return Encoding(name={"utf-8": UTF_8, "cp1252": WINDOWS.name}.get(codec, name.strip()), codec=codec)


def has_controls(data: bytes) -> bool:
    """Whether there are control characters that no text has."""
    return bool(data.translate(None, _TEXT_BYTES))


def shown_text(data: bytes, *, is_head: bool = False) -> tuple[str, str]:
    """A text for reading, bytes that are none replaced, and its encoding in one line; empty for UTF-8.

    `is_head`: these are the first bytes of a longer one.
    """
    found = (detected_head(data) if is_head else detected(data)) or PLAIN
    if is_head and found.codec != "utf-8":
        return found.decoder().decode(data.removeprefix(found.mark)), found.description
    text = found.decode(data, path="/") if found.mark or found.codec != "utf-8" else data.decode(errors="replace")
    return text, "" if found.is_plain else found.description


def as_utf_8(data: bytes) -> bytes | None:
    """The bytes of a text in UTF-8, without a mark, for what searches in bytes; strays stay. `None` for no text."""
    if data.isascii() and b"\0" not in data:
        return data
    found = detected(data)
    if found is None:
        return None
    return (
        data
        if found.codec == "utf-8" and not found.mark
        else found.decode(data, path="/").encode(errors="surrogateescape")
    )


_TEXT_BYTES: Final = bytes(set(range(256)) - set(_CONTROLS))
_WINDOWS_BYTES: Final = bytes(set(_TEXT_BYTES) - set(_UNDEFINED))
_UTF_16: Final = (
    Encoding(name="UTF-16 LE", codec="utf-16-le", is_assumed=True),
    Encoding(name="UTF-16 BE", codec="utf-16-be", is_assumed=True),
)


def _declared(data: bytes) -> Encoding | None:
    """The encoding that a text declares, where its bytes are text in it and would stay the same."""
    found = _DECLARED.search(data[:_DECLARED_WITHIN])
    if found is None:
        return None
    name = next(group for group in found.groups() if group).decode("ascii", "replace")
    try:
        encoding = named(name)
    except FileFailed:
        return None
    if encoding.codec in {"iso8859-1", "ascii"}:  # as browsers do
        encoding = Encoding(name=WINDOWS.name, codec=WINDOWS.codec)
    if encoding.codec.startswith("utf-") or not _is_text(data, encoding):
        return None
    return encoding if data.decode(encoding.codec).encode(encoding.codec, "replace") == data else None


def _strays(data: bytes) -> tuple[int, int]:
    """Bytes that are no part of a character of UTF-8, and the characters beyond ASCII that there are."""
    text = data.decode(errors="surrogateescape")
    strays = len(data) - len(text.encode(errors="ignore"))
    return strays, len(text) - len(text.encode("ascii", "ignore")) - strays if strays else 0


def _is_text(data: bytes, encoding: Encoding) -> bool:
    try:
        text = data.removeprefix(encoding.mark).decode(encoding.codec)
    except UnicodeDecodeError:
        return False
    return not any(chr(each) in text for each in _CONTROLS)


def _is_utf_16(data: bytes, encoding: Encoding) -> bool:
    """Whether every second byte of most characters is null, as in the languages of Europe, and no other one is."""
    high = data[1::2] if encoding.codec == "utf-16-le" else data[::2]
    low = data[::2] if encoding.codec == "utf-16-le" else data[1::2]
    return 0 not in low and high.count(0) * 2 > len(high) and _is_text(data, encoding)


def _is_windows(data: bytes) -> bool:
    """Whether the bytes read as words of Western Europe: letters beyond ASCII stand among others, not by themselves."""
    if data.translate(None, _WINDOWS_BYTES):
        return False
    words = [found[0] for found, _ in zip(_WORDS.finditer(data), range(_MAX_WORDS), strict=False)]
    foreign = sum(len(word) > 2 and not re.search(rb"[A-Za-z]", word) for word in words)
    if foreign > 3 and foreign * 2 > len(words):
        return False
    return sum(_INNER_SIGNS.search(word) is not None for word in words) * 2 <= len(words)
