"""The operations of the API with a body for each: on one thing of a user's (`GUARDED`), or on one's own (`OWN`)."""

from typing import Any

HELLO: dict[str, Any] = {"message": {"parts": [{"type": "text", "text": "hi"}]}}

EXPORT = b"""{"kind": "session", "format": "think-session", "version": 1, "leaf": null}
{"kind": "end", "messages": 0}"""
EMPTY_ZIP = b"PK\x05\x06" + b"\x00" * 18
UPLOAD = b"\r\n".join(
    [
        b"--edge",
        b'Content-Disposition: form-data; name="file"; filename="x.jsonl"',
        b"Content-Type: application/octet-stream",
        b"",
        EXPORT,
        b"--edge",
        b'Content-Disposition: form-data; name="agent"',
        b"",
        b"assistant",
        b"--edge--",
        b"",
    ]
)

ARCHIVE = UPLOAD.replace(EXPORT, EMPTY_ZIP)
EXTENSION = {
    "manifest": {"name": "mine", "version": "1"},
    "source": "({ tools: { go: { execute: async () => 1 } } })",
}
EXTENSIONS = "/api/v1/instances/{instance_id}/extensions"
OWN_EXTENSIONS = "/api/v1/extensions"
WORKSPACE = "/api/v1/instances/{instance_id}/workspace"
QUERIES = {  # parameters that an operation needs
    ("DELETE", WORKSPACE + "/entries"): "?path=/private.txt",
    ("GET", WORKSPACE + "/entry"): "?path=/private.txt",
    ("GET", WORKSPACE + "/content"): "?path=/private.txt",
    ("PUT", WORKSPACE + "/content"): "?path=/private.txt",
    ("GET", WORKSPACE + "/search"): "?pattern=**",
}
# (method, path of the API): body, for operations on one thing of a user
GUARDED: dict[tuple[str, str], Any] = {
    ("DELETE", "/api/v1/programs/{grant_id}"): None,
    ("GET", "/api/v1/instances/{instance_id}"): None,
    ("PATCH", "/api/v1/instances/{instance_id}"): {"title": "Taken", "model_choice": None},
    ("DELETE", "/api/v1/instances/{instance_id}"): None,
    ("GET", "/api/v1/instances/{instance_id}/messages"): None,
    ("GET", "/api/v1/instances/{instance_id}/context"): None,
    ("PUT", "/api/v1/instances/{instance_id}/leaf"): {"message_id": "alices-question"},
    ("POST", "/api/v1/instances/{instance_id}/clear"): None,
    ("GET", "/api/v1/instances/{instance_id}/sessions"): None,
    ("POST", "/api/v1/instances/{instance_id}/sessions"): {"name": "Taken"},
    ("PUT", "/api/v1/instances/{instance_id}/session"): {"session_id": "{session_id}"},
    ("PATCH", "/api/v1/sessions/{session_id}"): {"name": "Taken", "pinned": True, "archived": True},
    ("DELETE", "/api/v1/sessions/{session_id}"): None,
    ("GET", "/api/v1/sessions/{session_id}/export"): None,
    ("POST", "/api/v1/instances/{instance_id}/imports"): UPLOAD,
    ("POST", "/api/v1/instances/{instance_id}/fork"): {"message_id": "alices-question"},
    ("POST", "/api/v1/instances/{instance_id}/messages/{message_id}/edit"): {"parts": HELLO["message"]["parts"]},
    ("GET", "/api/v1/sessions/{session_id}/messages"): None,
    ("POST", "/api/v1/instances/{instance_id}/turns"): HELLO,
    ("GET", "/api/v1/instances/{instance_id}/turns"): None,
    ("POST", "/api/v1/instances/{instance_id}/messages"): {"messages": [{"parts": [{"type": "text", "text": "hi"}]}]},
    ("POST", "/api/v1/instances/{instance_id}/submissions"): {
        "messages": [{"parts": [{"type": "text", "text": "hi"}]}]
    },
    ("GET", "/api/v1/instances/{instance_id}/submissions"): None,
    ("GET", "/api/v1/submissions/{submission_id}"): None,
    ("POST", "/api/v1/submissions/{submission_id}/cancel"): None,
    ("GET", "/api/v1/instances/{instance_id}/guard"): None,
    ("POST", "/api/v1/instances/{instance_id}/guard"): {"decision": "conversation", "seen": 1},
    ("GET", "/api/v1/instances/{instance_id}/calls"): None,
    ("POST", "/api/v1/instances/{instance_id}/calls/{call_id}/approval"): {"approved": True},
    ("POST", "/api/v1/instances/{instance_id}/calls/{call_id}/result"): {"output": "mine"},
    ("GET", "/api/v1/instances/{instance_id}/calls/{call_id}/events"): None,
    ("GET", "/api/v1/turns/{turn_id}"): None,
    ("POST", "/api/v1/turns/{turn_id}/cancel"): None,
    ("GET", "/api/v1/turns/{turn_id}/steps"): None,
    ("GET", "/api/v1/turns/{turn_id}/stream"): None,
    ("GET", "/api/v1/turns/{turn_id}/files"): None,
    ("GET", "/api/v1/sessions/{session_id}/context"): None,
    ("POST", "/api/v1/sessions/{session_id}/prompt"): None,
    ("PUT", "/api/v1/sessions/{session_id}/context/{label}"): {"content": "Taken"},
    ("DELETE", "/api/v1/sessions/{session_id}/context/{label}"): None,
    ("GET", "/api/v1/sessions/{session_id}/context/{label}/entries"): None,
    ("PUT", "/api/v1/sessions/{session_id}/context/{label}/entries/{key}"): {"content": "Taken"},
    ("DELETE", "/api/v1/sessions/{session_id}/context/{label}/entries/{key}"): None,
    ("GET", "/api/v1/sessions/{session_id}/changes"): None,
    ("GET", "/api/v1/sessions/{session_id}/summary"): None,
    ("POST", "/api/v1/sessions/{session_id}/summary"): None,
    ("PUT", "/api/v1/sessions/{session_id}/summary"): {"text": "mine"},
    ("DELETE", "/api/v1/sessions/{session_id}/summary"): None,
    ("POST", "/api/v1/instances/{instance_id}/compact"): {"instructions": "mine"},
    ("GET", "/api/v1/instances/{instance_id}/compactions"): None,
    ("GET", "/api/v1/sessions/{session_id}/compactions"): None,
    ("GET", "/api/v1/compactions/{compaction_id}"): None,
    ("PATCH", "/api/v1/compactions/{compaction_id}"): {"summary": "mine"},
    ("POST", "/api/v1/compactions/{compaction_id}/undo"): None,
    ("GET", "/api/v1/instances/{instance_id}/config"): None,
    ("PUT", "/api/v1/instances/{instance_id}/config"): {"config": {"tone": "rude"}},
    ("GET", "/api/v1/instances/{instance_id}/usage"): None,
    ("GET", "/api/v1/sessions/{session_id}/budget"): None,
    ("PUT", "/api/v1/sessions/{session_id}/budget"): {"max_cost": "0"},
    ("GET", "/api/v1/files/{file_id}"): None,
    ("DELETE", "/api/v1/files/{file_id}"): None,
    ("GET", EXTENSIONS): None,
    ("POST", EXTENSIONS): EXTENSION,
    ("GET", EXTENSIONS + "/{name}"): None,
    ("PATCH", EXTENSIONS + "/{name}"): {"enabled": False},
    ("DELETE", EXTENSIONS + "/{name}"): None,
    ("GET", EXTENSIONS + "/{name}/versions"): None,
    ("GET", EXTENSIONS + "/{name}/calls"): None,
    ("GET", WORKSPACE): None,
    ("GET", WORKSPACE + "/entries"): None,
    ("DELETE", WORKSPACE + "/entries"): None,
    ("GET", WORKSPACE + "/entry"): None,
    ("GET", WORKSPACE + "/content"): None,
    ("PUT", WORKSPACE + "/content"): {"taken": True},
    ("POST", WORKSPACE + "/directories"): {"path": "/taken"},
    ("POST", WORKSPACE + "/moves"): {"source": "/private.txt", "target": "/taken.txt"},
    ("POST", WORKSPACE + "/copies"): {"source": "/private.txt", "target": "/taken.txt"},
    ("POST", WORKSPACE + "/diff"): {"path": "/private.txt", "content": "mine"},
    ("GET", WORKSPACE + "/search"): None,
    ("GET", WORKSPACE + "/archive"): None,
    ("POST", WORKSPACE + "/archive"): ARCHIVE,
}
GUARDED |= {
    ("GET", "/api/v1/instances/{instance_id}/runs"): None,
    ("GET", "/api/v1/instances/{instance_id}/runs/tree"): None,
    ("GET", "/api/v1/runs/{run_id}"): None,
    ("POST", "/api/v1/runs/{run_id}/stop"): None,
    ("GET", "/api/v1/instances/{instance_id}/mcp-servers"): None,
    ("POST", "/api/v1/instances/{instance_id}/mcp-servers"): {"name": "Taken", "url": "https://mcp.example.com/taken"},
    ("PATCH", "/api/v1/instances/{instance_id}/mcp-servers/{server_id}"): {"enabled": False, "trusted": True},
    ("DELETE", "/api/v1/instances/{instance_id}/mcp-servers/{server_id}"): None,
    ("POST", "/api/v1/instances/{instance_id}/mcp-servers/{server_id}/connect"): None,
    ("PATCH", "/api/v1/mcp-servers/{server_id}"): {"enabled": False, "trusted": True},
    ("DELETE", "/api/v1/mcp-servers/{server_id}"): None,
    ("POST", "/api/v1/mcp-servers/{server_id}/connect"): None,
    ("DELETE", "/api/v1/mcp-servers/{server_id}/sign-in"): None,
}
FIBERS = "/api/v1/instances/{instance_id}/fibers"
GUARDED |= {
    ("GET", FIBERS): None,
    ("GET", FIBERS + "/{fiber_id}"): None,
    ("POST", FIBERS + "/{fiber_id}/cancel"): None,
    ("POST", FIBERS + "/{fiber_id}/restart"): None,
    ("POST", FIBERS + "/{fiber_id}/resolve"): {"status": "completed"},
}
# Operations without an id: they answer with the caller's own
OWN: dict[tuple[str, str], Any] = {
    ("GET", "/api/v1/programs"): None,
    ("GET", "/api/v1/agents"): None,
    ("GET", "/api/v1/model"): None,
    ("GET", "/api/v1/models"): None,
    ("GET", "/api/v1/instances"): None,
    ("POST", "/api/v1/instances"): {"agent": "assistant", "name": "talk"},
    ("GET", "/api/v1/approvals"): None,
    ("GET", "/api/v1/actions"): None,
    ("GET", "/api/v1/mcp-servers"): None,
    ("POST", "/api/v1/mcp-servers"): {"name": "mine", "url": "https://mcp.example.com/mine"},
    ("POST", "/api/v1/files"): None,
    ("POST", "/api/v1/imports"): UPLOAD,
    ("GET", "/api/v1/search"): None,
    ("GET", "/api/v1/memory"): None,
    ("PUT", "/api/v1/memory/{label}"): {"content": "mine"},
    ("DELETE", "/api/v1/memory/{label}"): None,
    ("GET", "/api/v1/memory/{label}/entries"): None,
    ("PUT", "/api/v1/memory/{label}/entries/{key}"): {"content": "mine"},
    ("DELETE", "/api/v1/memory/{label}/entries/{key}"): None,
    ("GET", "/api/v1/memory-changes"): None,
    ("GET", OWN_EXTENSIONS): None,
    ("POST", OWN_EXTENSIONS): EXTENSION,
    ("GET", OWN_EXTENSIONS + "/{name}"): None,
    ("PATCH", OWN_EXTENSIONS + "/{name}"): {"enabled": False},
    ("DELETE", OWN_EXTENSIONS + "/{name}"): None,
    ("GET", OWN_EXTENSIONS + "/{name}/versions"): None,
    ("GET", OWN_EXTENSIONS + "/{name}/calls"): None,
}
