"""Errors of tools.

ThinkError
└─ ToolError      ToolDeclarationInvalid · SchemaInvalid · ToolNotFound · ToolInputInvalid · ResultInvalid ·
                 EditInvalid · ToolTimeout · FileFailed (FileConflict) · WorkspaceNotFound · WorkspaceExists ·
                 WorkspaceNameInvalid · ArchiveInvalid · SandboxUnavailable · CodeInvalid · ReplayMismatch ·
                 UndoRefused · SkillInvalid · McpServerInvalid · McpServerNotFound · McpServerRefused ·
                 McpServersFull · McpUnavailable (McpSignInNeeded) · McpSignInFailed (GrantRefused ·
                 OAuthUnreachable) · ExtensionInvalid · ExtensionExists · ExtensionConflict · ExtensionNotFound ·
                 ExtensionDenied · ExtensionUnloaded · ExtensionLimit · EgressClosed · RuleInvalid · RuleNotFound ·
                 RulesFull

`DatabaseAway` is control flow and no error of a tool: it ends the attempt that runs the call, which is made again.
"""

from typing import Final

from thinkproject.kernel.errors import Conflict, Denied, Invalid, NotFound, ThinkError, Unavailable


class ToolError(ThinkError):
    """A tool could not complete the request."""

    code = "tool_error"


class ToolDeclarationInvalid(ToolError, Invalid):
    """This function cannot be made a tool."""

    code = "tool_declaration_invalid"


class SchemaInvalid(ToolError, Invalid):
    """This is no JSON Schema."""

    code = "schema_invalid"


class ToolNotFound(ToolError, NotFound):
    """There is no tool of this name."""

    code = "tool_not_found"


class ToolInputInvalid(ToolError, Invalid):
    """The tool's input violates its schema."""

    code = "tool_input_invalid"


class ResultInvalid(ToolError, Invalid):
    """The result does not have the form that its tool declares."""

    code = "tool_result_invalid"


class EditInvalid(ToolError, Invalid):
    """The changed arguments cannot run. Data: `problems`, one line for each argument."""

    code = "edit_invalid"


class ToolTimeout(ToolError, Unavailable):
    """The tool did not finish in time."""

    code = "tool_timeout"


class SkillInvalid(ToolError, Invalid):
    """This skill cannot be used."""

    code = "skill_invalid"


class UndoRefused(ToolError, Conflict):
    """This effect cannot be undone: it is not settled, has no compensation, or was undone before."""

    code = "undo_refused"


_STATUSES: Final = {"ENOENT": 404, "EPERM": 403, "EFBIG": 413, "EINVAL": 422, "ENAMETOOLONG": 422, "EIO": 500}


class FileFailed(ToolError):
    """A file operation failed. Data: `errno`, the POSIX name of the reason, and `path`."""

    code = "file_failed"

    http_status = 409

    @property
    def errno(self) -> str:
        """The POSIX name of the reason, as `ENOENT`."""
        return str(self.data.get("errno", "EIO"))

    @property
    def response_status(self) -> int:
        """The HTTP status that fits the reason."""
        return _STATUSES.get(self.errno, self.http_status)


class FileConflict(FileFailed, Conflict):
    """The file has changed since it was read. Data: also `version`, the present one (empty: it is gone)."""

    code = "file_conflict"


class ExecutionNotFound(ToolError, NotFound):
    """No code of this id ran in this conversation."""

    code = "execution_not_found"


class WorkspaceNotFound(ToolError, NotFound):
    """There is no such workspace."""

    code = "workspace_not_found"


class WorkspaceExists(ToolError, Conflict):
    """There is a workspace of this name already."""

    code = "workspace_exists"


class WorkspaceNameInvalid(ToolError, Invalid):
    """A workspace's name begins with a letter, and has up to 64 letters, digits and underscores."""

    code = "workspace_name_invalid"


class ArchiveInvalid(ToolError, Invalid):
    """The archive cannot be imported."""

    code = "archive_invalid"


class SandboxUnavailable(ToolError, Unavailable):
    """Code cannot be run right now."""

    code = "sandbox_unavailable"


class CodeInvalid(ToolError, Invalid):
    """This code, or what it is given, cannot be run."""

    code = "code_invalid"


class ReplayMismatch(ToolError, Conflict):
    """The code did not repeat its calls, so it cannot go on where it was interrupted."""

    code = "replay_mismatch"


class McpServerInvalid(ToolError, Invalid):
    """This MCP server cannot be added."""

    code = "mcp_server_invalid"


class McpServerNotFound(ToolError, NotFound):
    """There is no such MCP server."""

    code = "mcp_server_not_found"


class McpServerRefused(ToolError, Denied):
    """You may not do this with MCP servers here."""

    code = "mcp_server_refused"


class McpServersFull(ToolError, Conflict):
    """You have as many MCP servers as you can. Remove one first."""

    code = "mcp_servers_full"


class McpUnavailable(ToolError, Unavailable):
    """The MCP server does not answer right now."""

    code = "mcp_unavailable"


class McpSignInNeeded(McpUnavailable):
    """A person has to sign in at this MCP server first."""

    code = "mcp_sign_in_needed"
    retryable = False


class McpSignInFailed(ToolError, Invalid):
    """Signing in at the MCP server did not succeed. Try again."""

    code = "mcp_sign_in_failed"


class GrantRefused(McpSignInFailed):
    """The authorization server does not accept this any more. Sign in again."""

    code = "mcp_grant_refused"


class OAuthUnreachable(McpSignInFailed):
    """The authorization server does not answer right now. Try again in a moment."""

    code = "mcp_authorization_server_unreachable"
    http_status = 503
    retryable = True


class ExtensionInvalid(ToolError, Invalid):
    """This cannot be an extension."""

    code = "extension_invalid"


class ExtensionExists(ToolError, Conflict):
    """An extension of this name is loaded already."""

    code = "extension_exists"


class ExtensionConflict(ToolError, Conflict):
    """The extension has changed since it was read. Data: `revision`, the present one, and `number`, of its version."""

    code = "extension_conflict"


class ExtensionNotFound(ToolError, NotFound):
    """There is no such extension."""

    code = "extension_not_found"


class ExtensionDenied(ToolError, Denied):
    """The extension has no permission for this."""

    code = "extension_denied"


class ExtensionUnloaded(ToolError, Conflict):
    """The extension has been unloaded."""

    code = "extension_unloaded"


class ExtensionLimit(ToolError, Conflict):
    """There is no room for more extensions, or they were changed too often."""

    code = "extension_limit"


class EgressClosed(ToolError, Denied):
    """Nothing is sent to the network while the conversation holds text of strangers. A person can allow it."""

    code = "egress_closed"


class RuleInvalid(ToolError, Invalid):
    """This is no rule about calls."""

    code = "rule_invalid"


class RuleNotFound(ToolError, NotFound):
    """There is no such rule."""

    code = "rule_not_found"


class RulesFull(ToolError, Conflict):
    """You have as many rules as you can. Remove some first."""

    code = "rules_full"


class DatabaseAway(BaseException):
    """The database was away while a call ran. It has no result: the attempt ends, and another one makes the call again.

    No `Exception`, so that no tool takes it for an error of its own. `error`: Django's.
    """

    def __init__(self, error: Exception) -> None:
        self.error = error
        super().__init__(error)
