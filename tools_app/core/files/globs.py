"""Glob patterns over paths. Pure."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GlobPattern:
    """A compiled pattern. `prefix`: the directory that all matches are in, ending in a slash."""

    prefix: str
    regex: re.Pattern[str]

    def matches(self, path: str) -> bool:
        """Whether a normalised path matches."""
        return self.regex.fullmatch(path) is not None


def compile_glob(pattern: str) -> GlobPattern:
    """Compile `*`, `**`, `?`, `[…]`, `[!…]` and `{a,b}`; a pattern without a leading slash is rooted at `/`."""
    rooted = pattern if pattern.startswith("/") else f"/{pattern}"
    literal = re.split(r"[*?\[{]", rooted, maxsplit=1)[0]
    out, at, depth = [], 0, 0
    while at < len(rooted):
        char = rooted[at]
        if rooted.startswith("**/", at):
            out.append("(?:[^/]+/)*")
            at += 3
            continue
        if rooted.startswith("**", at):
            out.append(".*")
            at += 2
            continue
        end = rooted.find("]", at + 2) if char == "[" else -1
        if end > 0:
            body = rooted[at + 1 : end].replace("\\", r"\\")
            out.append(f"[^/{body[1:]}]" if body[0] in "!^" else f"[{body}]")
            at = end + 1
            continue
        if char == "{":
            depth += 1
        simple = {"*": "[^/]*", "?": "[^/]", "{": "(?:"}
        if depth and char in "},":
            out.append(")" if char == "}" else "|")
            depth -= char == "}"
        else:
            out.append(simple.get(char, re.escape(char)))
        at += 1
    return GlobPattern(literal[: literal.rfind("/") + 1], re.compile("".join(out) + ")" * depth, re.DOTALL))
