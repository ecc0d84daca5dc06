"""MCP servers as a client learns of them. No agent is served by importing this."""

MCP = {
    "servers": {
        "srv1": {
            "name": "Docs",
            "server_url": "https://docs.example/mcp",
            "auth_url": None,
            "state": "ready",
            "error": None,
            "instructions": None,
            "capabilities": {},
        }
    },
    "tools": [{"name": "search", "serverId": "srv1", "inputSchema": {"type": "object"}, "title": "Search"}],
    "prompts": [{"name": "review", "serverId": "srv1"}],
    "resources": [{"name": "Readme", "uri": "file:///README", "serverId": "srv1"}],
}
