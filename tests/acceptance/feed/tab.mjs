// A page that shows a conversation with the published client: `follow(url)`, then `shown` is what its collections hold.
import { createStateSchema } from "@durable-streams/state";
import { createStreamDB } from "@durable-streams/state/db";

const anything = { "~standard": { version: 1, vendor: "test", validate: (value) => ({ value }) } };
const of = (type) => ({ schema: anything, type, primaryKey: "id" });
const state = createStateSchema({ sessions: of("session"), messages: of("message"), turns: of("turn") });

function show({ messages, turns }) {
  const said = messages.toArray
    .toSorted((one, other) => one.created_at.localeCompare(other.created_at))
    .map(({ role, parts }) => [role, parts.map(({ text }) => text ?? "").join("")]);
  globalThis.shown = { said, turns: turns.toArray.map(({ status }) => status) };
  document.body.replaceChildren(...said.map(([role, text]) => {
    const line = document.createElement("p");
    line.textContent = `${role}: ${text}`;
    return line;
  }));
}

globalThis.follow = async (url) => {
  const db = createStreamDB({
    streamOptions: { url, contentType: "application/json" },
    state,
    live: "sse",
    onBeforeBatch({ items }) {
      if (!items.some(({ headers }) => headers.control === "reset")) return;
      db.close(); // as in follow.mjs
      setTimeout(() => globalThis.follow(url));
    },
  });
  await db.preload();
  show(db.collections);
  for (const collection of Object.values(db.collections)) collection.subscribeChanges(() => show(db.collections));
};
