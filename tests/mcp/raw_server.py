"""A server of the tests that says what a file holds, whether or not it follows the protocol: `raw_server.py FILE`.

`FILE` has JSON: the results by their methods, or by `METHOD CURSOR`. One that is `{"error": …}` is an error. It is read
anew for each request.
"""

import json
import sys
from pathlib import Path
from typing import Any

INITIALIZED: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "raw", "version": "1"},
}


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        answers = {"initialize": INITIALIZED, **json.loads(Path(sys.argv[1]).read_text())}
        if asked["method"] == "tools/call":
            called = {"content": [{"type": "text", "text": f"called {asked['params']['name']}"}]}
            answers.setdefault("tools/call", called)
        answer: dict[str, Any] = {"error": {"code": -32601, "message": "Method not found"}}
        cursor = (asked.get("params") or {}).get("cursor")
        name = f"{asked['method']} {cursor}"
        if (result := answers.get(name, answers.get(asked["method"]))) is not None:
            answer = result if isinstance(result, dict) and result.keys() == {"error"} else {"result": result}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
