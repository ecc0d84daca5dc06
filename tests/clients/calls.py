"""Calls of an agent's methods by a published client."""

from typing import Any

from tests.clients.tab import Tab

CALL = """async ([method, args, options]) => {
  const seen = {chunks: [], done: [], errors: []};
  const stream = {
    onChunk: (chunk) => seen.chunks.push(chunk),
    onDone: (value) => seen.done.push(value ?? null),
    onError: (text) => seen.errors.push(text),
  };
  const {streams, ...rest} = options;
  try {
    seen.result = await harness.agent.call(method, args, streams ? {...rest, stream} : rest) ?? null;
  } catch (error) {
    seen.error = error.message;
  }
  return streams ? seen : seen.error === undefined ? seen.result : {error: seen.error};
}"""


def call(tab: Tab, method: str, *arguments: Any, **options: Any) -> Any:
    """Call a method and wait for what comes of it."""
    return tab.page.evaluate(CALL, [method, list(arguments), options])
