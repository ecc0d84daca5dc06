"""The head of a `SKILL.md`: YAML between two lines of `---`, as the Agent Skills format has it. Pure.

The file is a stranger's: tags make no objects, aliases are refused, and everything is bounded.
"""

import re
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from sessions_app.core.context.documents import begins_with_head, read_document, split_head
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.errors import SkillInvalid

NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z")
MAX_NAME_CHARS: Final = 64
MAX_DESCRIPTION_CHARS: Final = 1024
MAX_HEAD_CHARS: Final = 16_384
MAX_COMPATIBILITY_CHARS: Final = 500
MAX_METADATA: Final = 50
MAX_ALLOWED_TOOLS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillHead:
    """The facts about a skill that its file gives. `allowed_tools`: those that its author recommends."""

    name: str
    description: str
    license: str = ""
    compatibility: str = ""
    allowed_tools: tuple[str, ...] = ()
    metadata: JSONObject = field(default_factory=dict)


class _Loader(yaml.SafeLoader):
    """Plain values only: a head needs no aliases, and nested ones grow without bound."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """As the base; refuses aliases."""
        if self.check_event(yaml.events.AliasEvent):
            raise SkillInvalid("Its head uses YAML aliases, which are not supported.")
        return super().compose_node(parent, index)


def read_skill(source: str) -> tuple[SkillHead, str]:
    """Split a `SKILL.md` into its head and its instructions. Errors: `SkillInvalid`, with the reason."""
    text = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\0", "\N{REPLACEMENT CHARACTER}")
    if not begins_with_head(text):
        raise SkillInvalid("It does not begin with a head between two lines of '---'.")
    found = split_head(text, max_chars=MAX_HEAD_CHARS)
    if found is None:
        raise SkillInvalid(f"Its head does not end within {MAX_HEAD_CHARS} characters.")
    head, instructions = found
    return _head(_fields(head, text)), instructions.strip()


def _fields(head: str, text: str) -> dict[str, Any]:
    try:
        loaded = yaml.load(head, _Loader)  # noqa: S506 - a safe loader, narrowed
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # Many skills in use have an unquoted colon in their description, which is no YAML.
        document = read_document(text, name="")
        if document.name and document.description:
            return {"name": document.name, "description": document.description}
        raise SkillInvalid("Its head is not valid YAML.") from error
    if not isinstance(loaded, dict):
        raise SkillInvalid("Its head has no fields.")
    return loaded


def _head(fields: dict[str, Any]) -> SkillHead:
    name, description = _text(fields.get("name")), _text(fields.get("description"))
    if not NAME.match(name) or len(name) > MAX_NAME_CHARS:
        raise SkillInvalid("Its name must have 1 to 64 lower-case letters, digits and single hyphens between them.")
    if not description:
        raise SkillInvalid("It has no description.")
    given = fields.get("allowed-tools")
    tools = given if isinstance(given, list) else _text(given).replace(",", " ").split()
    metadata = fields.get("metadata")
    return SkillHead(
        name=name,
        description=description[:MAX_DESCRIPTION_CHARS],
        license=_text(fields.get("license"))[:MAX_COMPATIBILITY_CHARS],
        compatibility=_text(fields.get("compatibility"))[:MAX_COMPATIBILITY_CHARS],
        allowed_tools=tuple(_text(tool) for tool in tools[:MAX_ALLOWED_TOOLS] if _text(tool)),
        metadata=_metadata(metadata) if isinstance(metadata, dict) else {},
    )


def _metadata(given: dict[Any, Any]) -> JSONObject:
    pairs = list(given.items())[:MAX_METADATA]
    return {_text(key)[:MAX_COMPATIBILITY_CHARS]: _text(value)[:MAX_COMPATIBILITY_CHARS] for key, value in pairs}


def _text(value: object) -> str:
    """A scalar on one line; empty for anything else."""
    if not isinstance(value, str | int | float):
        return ""
    return " ".join(str(value).split())
