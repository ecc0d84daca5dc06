"""Names of the file tools, as models see them, in each of the three conventions, and for people."""

from typing import Final, Literal, TypeAlias

FileToolKind: TypeAlias = Literal["read", "write", "edit", "list", "find", "grep", "delete"]
NameSet: TypeAlias = Literal["short", "snake_case", "camel_case"]
"""`read`, `read_file` or `readFile`. A summary's lists of files understand them all (`sessions_app`)."""

NAMES: Final[dict[NameSet, dict[FileToolKind, str]]] = {
    "short": {
        "read": "read",
        "write": "write",
        "edit": "edit",
        "list": "list",
        "find": "find",
        "grep": "grep",
        "delete": "delete",
    },
    "snake_case": {
        "read": "read_file",
        "write": "write_file",
        "edit": "edit_file",
        "list": "list_directory",
        "find": "find_files",
        "grep": "grep",
        "delete": "delete",
    },
    "camel_case": {
        "read": "readFile",
        "write": "writeFile",
        "edit": "editFile",
        "list": "listFiles",
        "find": "findFiles",
        "grep": "grep",
        "delete": "deleteFile",
    },
}

TITLES: Final[dict[FileToolKind, str]] = {
    "read": "Read a file",
    "write": "Write a file",
    "edit": "Edit a file",
    "list": "List a directory",
    "find": "Find files",
    "grep": "Search in files",
    "delete": "Delete a file",
}
"""The names for people."""
