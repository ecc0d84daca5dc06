"""The filter of system calls for containers of podman: podman's own, without what makes namespaces and mounts.

Podman allows these so that containers can be nested. A command that makes a user namespace is its root, and reaches
much of the kernel that is closed to it otherwise. Docker's filter allows none of them.
"""

import json
from pathlib import Path
from typing import Any, Final

WITHHELD: Final = {
    *("unshare", "setns", "clone", "clone3", "mount", "umount", "umount2", "pivot_root", "mount_setattr"),
    *("fsopen", "fsconfig", "fsmount", "fspick", "move_mount", "open_tree", "add_key", "keyctl", "request_key"),
}
NEW_NAMESPACES: Final = 0x7E020000
"""All flags of `clone` that make namespaces."""


def command_filter(path: str) -> str:
    """The filter as JSON, made of podman's. Empty where that cannot be read or does not deny what it does not name."""
    try:
        found = json.loads(Path(path).read_text())
        denies = found["defaultAction"] != "SCMP_ACT_ALLOW"
        return json.dumps({**found, "syscalls": _withheld(found["syscalls"])}) if denies else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _withheld(rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = []
    for rule in rules:
        names = rule["names"]
        if rule["action"] == "SCMP_ACT_ALLOW":
            names = [name for name in names if name not in WITHHELD]
        if names:
            kept.append({**rule, "names": names})
    plain = {"index": 0, "value": NEW_NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
    return [*kept, {"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [plain]}]
