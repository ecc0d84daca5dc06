// The published suite against a server of ours, whose streams need a token.
const { CONFORMANCE_URL: baseUrl, CONFORMANCE_TOKEN: token } = process.env
const send = globalThis.fetch
globalThis.fetch = (input, init = {}) => {
  const url = input instanceof Request ? input.url : String(input)
  const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined))
  if (url.startsWith(baseUrl) && !headers.has("authorization")) headers.set("authorization", `Bearer ${token}`)
  return send(input, { ...init, headers })
}
const { runConformanceTests } = await import("@durable-streams/server-conformance-tests")
runConformanceTests({ baseUrl, longPollTimeoutMs: 2000, subscriptions: true })
