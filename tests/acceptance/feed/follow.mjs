// Follows a conversation with the published client and prints what its collections hold after each change, a line each.
import { createStateSchema } from "@durable-streams/state";
import { createStreamDB } from "@durable-streams/state/db";

const anything = { "~standard": { version: 1, vendor: "test", validate: (value) => ({ value }) } };
const of = (type) => ({ schema: anything, type, primaryKey: "id" });
const db = createStreamDB({
  streamOptions: {
    url: Deno.env.get("STATE_URL"),
    headers: { Authorization: `Bearer ${Deno.env.get("STATE_TOKEN")}` },
    contentType: "application/json",
  },
  live: Deno.env.get("STATE_LIVE") ?? "sse",
  state: createStateSchema({
    conversations: of("conversation"),
    sessions: of("session"),
    messages: of("message"),
    turns: of("turn"),
    calls: of("call"),
  }),
});

function print() {
  const { messages, turns, sessions } = db.collections;
  const said = messages.toArray
    .toSorted((one, other) => one.created_at.localeCompare(other.created_at))
    .map(({ role, parts }) => [role, parts.map(({ text }) => text ?? "").join("")]);
  console.log(JSON.stringify({ said, turns: turns.toArray.map(({ status }) => status), sessions: sessions.size }));
}

await db.preload();
print();
for (const collection of Object.values(db.collections)) collection.subscribeChanges(print);
