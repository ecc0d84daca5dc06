"""The script that runs an extension once: it describes itself, a tool runs, or a hook does.

The script is no wall: it shares its globals with the extension. What the extension may do is decided where its calls
arrive (`bridge.py`), whatever the script was made to say.
"""

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump
from tools_app.core.code.normalise import without_fence
from tools_app.sandbox.contract import Script

HOST: Final = "host"
METHODS: Final = (
    "readFile",
    "writeFile",
    "deleteFile",
    "listFiles",
    "getContext",
    "setContext",
    "getMessages",
    "sendMessage",
    "getSessionInfo",
)
"""The methods of the object `host` that extensions are given. `fetch` is a function of its own."""

_SCRIPT: Final = """async () => {
  const task = JSON.parse(%(task)s);
  const bridge = globalThis.host;
  delete globalThis.host;
  globalThis.fetch = async (input, init) => {
    const request = new Request(input, init);
    const body = request.body === null ? null : new Uint8Array(await request.arrayBuffer());
    const sent = { url: request.url, method: request.method, headers: [...request.headers], body };
    const answer = await bridge.fetch({ ...sent, redirect: init?.redirect ?? "follow" });
    const empty = [101, 204, 205, 304].includes(answer.status);
    const { status, reason: statusText, headers } = answer;
    const response = new Response(empty ? null : answer.body, { status, statusText, headers });
    Object.defineProperty(response, "url", { value: answer.url });
    Object.defineProperty(response, "redirected", { value: answer.redirected });
    return response;
  };
  const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  const methods = task.methods.map((name) => [name, (...args) => bridge[name](...args)]);
  const host = task.hasHost ? Object.freeze(Object.fromEntries(methods)) : null;
  const extension = (%(source)s
);
  if (!isObject(extension)) throw new TypeError("An extension is an object expression: ({ tools: { ... } })");
  const isTool = (value) => isObject(value) && typeof value.execute === "function";
  const keys = Object.keys(extension);
  if (!Object.hasOwn(extension, "tools") && keys.some((key) => isTool(extension[key]))) {
    throw new TypeError("Tools at the top level are not accepted: put them below `tools`, as ({ tools: { ... } })");
  }
  const unknown = keys.find((key) => key !== "tools" && key !== "hooks");
  if (unknown !== undefined) throw new TypeError(`An extension has tools and hooks, and no "${unknown}"`);
  const tools = extension.tools ?? {}, hooks = extension.hooks ?? {};
  if (!isObject(tools) || !isObject(hooks)) throw new TypeError("The tools and hooks of an extension are objects");
  if (task.action === "describe") {
    for (const [name, tool] of Object.entries(tools)) {
      if (!isTool(tool)) throw new TypeError(`The tool "${name}" has no function "execute"`);
    }
    for (const [name, hook] of Object.entries(hooks)) {
      if (typeof hook !== "function") throw new TypeError(`The hook "${name}" is no function`);
    }
    const shown = Object.entries(tools).map(([name, { description, parameters, required }]) => (
      { name, description: String(description ?? ""), parameters: parameters ?? null, required: required ?? null }
    ));
    return { tools: shown, hooks: Object.keys(hooks) };
  }
  if (task.action === "execute") {
    if (!Object.hasOwn(tools, task.name)) throw new Error(`Unknown tool: ${task.name}`);
    return await tools[task.name].execute(task.args, host);
  }
  if (!Object.hasOwn(hooks, task.name)) return null;
  let result = null;
  for (const event of task.args) result = await hooks[task.name](event, host);
  return result ?? null;
}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The purpose of a run. `args`: the input of a tool, or the events of a hook.

    `has_host`: the extension gets the object `host`, else null.
    """

    action: str
    name: str = ""
    args: JSONValue = None
    has_host: bool = False


DESCRIBE: Final = Task(action="describe")


def execute_task(name: str, given: JSONObject, *, has_host: bool) -> Task:
    """Run a tool, by its own name."""
    return Task(action="execute", name=name, args=given, has_host=has_host)


def hook_task(name: str, events: Sequence[JSONObject], *, has_host: bool) -> Task:
    """Call a hook, once for each event; the value of the last call is the value."""
    return Task(action="hook", name=name, args=list(events), has_host=has_host)


def clean_source(text: str) -> str:
    """The expression that a model or a person wrote: without a Markdown fence and the semicolon behind it."""
    return without_fence(text).rstrip().rstrip(";").rstrip()


def script_for(source: str, task: Task) -> Script:
    """The script of one run. Its clock is the present one and its random numbers are its own: nothing is repeated."""
    shown = {
        "action": task.action,
        "name": task.name,
        "args": task.args,
        "hasHost": task.has_host,
        "methods": list(METHODS),
    }
    filled = _SCRIPT % {"task": json.dumps(dump(shown)), "source": source}  # parsed: `__proto__` is a key like others
    return Script(source=filled, namespaces=(HOST,), seed=secrets.token_hex(8), now_ms=int(time.time() * 1000))
