"""Code of a model that has a page open."""

OPEN = """
  const { targetId } = await cdp.send({ method: "Target.createTarget", params: { url: "about:blank" } });
  const { sessionId } = await cdp.attachToTarget({ targetId });
  const send = (method, params = {}) => cdp.send({ method, params, sessionId });
  const value = async (expression) =>
    (await send("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true })).result.value;
  const go = async (url) => {
    await send("Page.enable");
    await send("Page.navigate", { url });
    await cdp.waitForEvent({ method: "Page.loadEventFired", sessionId });
  };
  const tried = async (work) => { try { await work(); return "done"; } catch (error) { return error.message; } };
"""


def opened(body: str) -> str:
    return f"async () => {{ {OPEN} {body} }}"
