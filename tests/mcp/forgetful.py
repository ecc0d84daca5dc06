"""A server of the network that forgets its sessions when a test wants it to, as one does that is started again."""

import json
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route


def _error(code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}


REFUSALS: dict[str, tuple[int, Any]] = {
    "as the protocol says": (404, _error(-32001, "Session not found")),
    "without words": (404, None),
    "not initialized": (400, _error(-32000, "Bad Request: Server not initialized")),
    "no valid id": (400, _error(-32000, "Bad Request: No valid session ID provided")),
}
"""Ways in which servers refuse a session that they do not know."""


class Forgetful:
    """Counts what it did. `tools`: the names that it offers."""

    def __init__(self, refusal: str = "as the protocol says") -> None:
        self.refusal = refusal
        self.sessions: set[str] = set()
        self.made = 0
        self.called = 0
        self.tools = ["count"]
        self.app = Starlette(routes=[Route("/mcp", self._answer, methods=["GET", "POST", "DELETE"])])

    def forget(self) -> None:
        """Know no session any more."""
        self.sessions.clear()

    async def _answer(self, request: Request) -> Response:
        if request.method != "POST":
            return Response(status_code=405)
        asked = json.loads(await request.body())
        method = asked.get("method", "")
        if method == "initialize":
            return self._begin(asked)
        if request.headers.get("mcp-session-id") not in self.sessions:
            status, body = REFUSALS[self.refusal]
            return Response(status_code=status) if body is None else JSONResponse(body, status)
        if "id" not in asked:
            return Response(status_code=202)
        if method == "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in self.tools]
            return self._result(asked, {"tools": tools})
        if method == "tools/call":
            self.called += 1
            return self._result(asked, {"content": [{"type": "text", "text": f"call {self.called}"}]})
        error = {"code": -32601, "message": "Method not found"}
        return JSONResponse({"jsonrpc": "2.0", "id": asked["id"], "error": error}, 404)

    def _begin(self, asked: Any) -> Response:
        self.made += 1
        session = f"s{self.made}"
        self.sessions.add(session)
        version = asked["params"]["protocolVersion"]
        info = {"name": "forgetful", "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        return self._result(asked, result, {"Mcp-Session-Id": session})

    def _result(self, asked: Any, result: Any, headers: dict[str, str] | None = None) -> Response:
        return JSONResponse({"jsonrpc": "2.0", "id": asked["id"], "result": result}, headers=headers)
