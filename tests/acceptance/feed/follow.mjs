// Follows a conversation with the published client and prints what its collections hold after each change, a line each.
import { createStateSchema } from "@durable-streams/state";
import { createStreamDB } from "@durable-streams/state/db";

const anything = { "~standard": { version: 1, vendor: "test", validate: (value) => ({ value }) } };
const of = (type) => ({ schema: anything, type, primaryKey: "id" });
const state = createStateSchema({
  conversations: of("conversation"),
  sessions: of("session"),
  messages: of("message"),
  turns: of("turn"),
  calls: of("call"),
});
const streamOptions = {
  url: Deno.env.get("STATE_URL"),
  headers: { Authorization: `Bearer ${Deno.env.get("STATE_TOKEN")}` },
  contentType: "application/json",
};

function print({ messages, turns }) {
  const said = messages.toArray
    .toSorted((one, other) => one.created_at.localeCompare(other.created_at))
    .map(({ role, parts }) => [role, parts.map(({ text }) => text ?? "").join("")]);
  console.log(JSON.stringify({ said, turns: turns.toArray.map(({ status }) => status) }));
}

// The collections of 0.3.1 fail at a `reset`: begin with new ones instead.
async function follow() {
  const db = createStreamDB({
    streamOptions,
    state,
    live: Deno.env.get("STATE_LIVE"),
    onBeforeBatch({ items }) {
      if (items.some(({ headers }) => headers.control === "reset")) {
        db.close();
        setTimeout(follow);
      }
    },
  });
  await db.preload();
  print(db.collections);
  for (const collection of Object.values(db.collections)) collection.subscribeChanges(() => print(db.collections));
}

await follow();
