// A program in TypeScript that uses an agent: `program.ts ADDRESS TOKEN`. It prints what it saw as JSON.
import process from "node:process";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [address, token] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${token}` };
const client = new Client({ name: "typescript", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(new URL(address), { requestInit: { headers } }));

const { tools } = await client.listTools();
const sum = await client.callTool({ name: "add", arguments: { a: 20, b: 22 } });

let reports = 0;
const chat = await client.callTool(
  { name: "chat", arguments: { message: "stream 40 words at 20/s", conversation: "typed" } },
  undefined,
  { onprogress: () => (reports += 1), resetTimeoutOnProgress: true },
);

const leaving = new AbortController();
const aborted = await client
  .callTool(
    { name: "chat", arguments: { message: "stream 2000 words at 20/s", conversation: "typed-away" } },
    undefined,
    { signal: leaving.signal, onprogress: () => leaving.abort("enough") },
  )
  .then(() => false)
  .catch(() => true);

const { resources } = await client.listResources();
const { contents } = await client.readResource({ uri: "think://counter/typed" });
const refused = await client.callTool({ name: "fail", arguments: {} });
await client.close();
console.log(
  JSON.stringify({
    tools: tools.map((tool) => tool.name),
    sum: sum.structuredContent,
    chat: chat.structuredContent,
    reports,
    aborted,
    resources: resources.map((resource) => resource.uri),
    history: JSON.parse(contents[0].text as string),
    refused: refused.isError,
  }),
);
