"""Names of this package's durable functions: a contract, since the rows of fibers hold them."""

from typing import Final

TURN_FIBER: Final = "chat.turn"
SEALED_TURN_FIBER: Final = "chat.turn_sealed"
RESPONSE_FIBER: Final = "chat.response"
EXPIRY_FIBER: Final = "chat.expire_question"
TITLE_FIBER: Final = "chat.title"
SUMMARY_FIBER: Final = "chat.summary"
COMPACT_FIBER: Final = "chat.compact"
MCP_FIBER: Final = "chat.mcp_connect"
MCP_READ_FIBER: Final = "chat.mcp_read"
