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


class ToolDeclarationInvalid(ToolError, Invalid):
    """This function cannot be made a tool."""


class SchemaInvalid(ToolError, Invalid):
    """This is no JSON Schema."""


class ToolNotFound(ToolError, NotFound):
    """There is no tool of this name."""


class ToolInputInvalid(ToolError, Invalid):
    """The tool's input violates its schema."""


class ResultInvalid(ToolError, Invalid):
    """The result does not have the form that its tool declares."""

    code = "tool_result_invalid"


class EditInvalid(ToolError, Invalid):
    """The changed arguments cannot run. Data: `problems`, one line for each argument."""


class ToolTimeout(ToolError, Unavailable):
    """The tool did not finish in time."""


class SkillInvalid(ToolError, Invalid):
    """This skill cannot be used."""


class UndoRefused(ToolError, Conflict):
    """This effect cannot be undone: it is not settled, has no compensation, or was undone before."""


_STATUSES: Final = {"ENOENT": 404, "EPERM": 403, "EFBIG": 413, "EINVAL": 422, "ENAMETOOLONG": 422, "EIO": 500}


class FileFailed(ToolError):
    """A file operation failed. Data: `errno`, the POSIX name of the reason, and `path`."""

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


class ExecutionNotFound(ToolError, NotFound):
    """No code of this id ran in this conversation."""


class WorkspaceNotFound(ToolError, NotFound):
    """There is no such workspace."""


class WorkspaceExists(ToolError, Conflict):
    """There is a workspace of this name already."""


class WorkspaceNameInvalid(ToolError, Invalid):
    """A workspace's name begins with a letter, and has up to 64 letters, digits and underscores."""


class ArchiveInvalid(ToolError, Invalid):
    """The archive cannot be imported."""


class SandboxUnavailable(ToolError, Unavailable):
    """Code cannot be run right now."""


class CodeInvalid(ToolError, Invalid):
    """This code, or what it is given, cannot be run."""


class ReplayMismatch(ToolError, Conflict):
    """The code did not repeat its calls, so it cannot go on where it was interrupted."""


class McpServerInvalid(ToolError, Invalid):
    """This MCP server cannot be added."""


class McpServerNotFound(ToolError, NotFound):
    """There is no such MCP server."""


class McpServerRefused(ToolError, Denied):
    """You may not do this with MCP servers here."""


class McpServersFull(ToolError, Conflict):
    """You have as many MCP servers as you can. Remove one first."""


class McpUnavailable(ToolError, Unavailable):
    """The MCP server does not answer right now."""


class McpSignInNeeded(McpUnavailable):
    """A person has to sign in at this MCP server first."""

    retryable = False


class McpSignInFailed(ToolError, Invalid):
    """Signing in at the MCP server did not succeed. Try again."""


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


class ExtensionExists(ToolError, Conflict):
    """An extension of this name is loaded already."""


class ExtensionConflict(ToolError, Conflict):
    """The extension has changed since it was read. Data: `revision`, the present one, and `number`, of its version."""


class ExtensionNotFound(ToolError, NotFound):
    """There is no such extension."""


class ExtensionDenied(ToolError, Denied):
    """The extension has no permission for this."""


class ExtensionUnloaded(ToolError, Conflict):
    """The extension has been unloaded."""


class ExtensionLimit(ToolError, Conflict):
    """There is no room for more extensions, or they were changed too often."""


class EgressClosed(ToolError, Denied):
    """Nothing is sent to the network while the conversation holds text of strangers. A person can allow it."""


class RuleInvalid(ToolError, Invalid):
    """This is no rule about calls."""


class RuleNotFound(ToolError, NotFound):
    """There is no such rule."""


class RulesFull(ToolError, Conflict):
    """You have as many rules as you can. Remove some first."""


class DatabaseAway(BaseException):
    """The database was away while a call ran. It has no result: the attempt ends, and another one makes the call again.

    No `Exception`, so that no tool takes it for an error of its own. `error`: Django's.
    """

    def __init__(self, error: Exception) -> None:
        self.error = error
        super().__init__(error)
