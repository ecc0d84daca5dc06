// Reading elsewhere than at the end of a conversation, against a server of the memory. No document.

import type { Schemas } from "../../../static/src/app/net/api.ts";
import { Conversation } from "../../../static/src/app/store/conversation.ts";
import { fromSearch, hitAddress, segmentsOf } from "../../../static/src/app/store/hits.ts";
import type { RawPage } from "../../../static/src/app/net/types.ts";
import { apiOf, idsOf, instance, item, page, same, TestLine } from "./making.ts";

const path = (count: number, name = "m") => Array.from({ length: count }, (_, index) => `${name}${index}`);
const itemOf = (id: string) => item(id, { sibling_ids: [id] });

/** Where a page is asked for. */
interface Wanted {
  before?: string;
  after?: string;
  around?: string;
  sessionId?: string;
}

/** Answers pages as the API does, of paths by name; counts them. */
class Server {
  readonly asked: Wanted[] = [];

  constructor(public shown: string[], public other: string[] = []) {}

  messages = (_id: string, { before, after, around, sessionId }: Wanted): Promise<RawPage> => {
    this.asked.push({ before, after, around, sessionId });
    const named = before ?? after ?? around;
    const whole = named && !this.shown.includes(named) ? this.other : this.shown;
    const at = named ? whole.indexOf(named) : whole.length;
    const [low, high] = around ? [at - 24, at + 26] : after ? [at + 1, at + 51] : [at - 50, at];
    const ids = whole.slice(Math.max(0, low), high);
    return Promise.resolve(page({
      session_id: "s",
      items: ids.map(itemOf),
      queued: [],
      has_more: low > 0,
      has_newer: high < whole.length,
      leaf_id: whole.at(-1),
      shown_leaf_id: this.shown.at(-1),
      running: null,
      failed: null,
    }));
  };

  selectLeaf = (_id: string, leaf: string): Promise<object> => {
    if (this.other.at(-1) === leaf) [this.shown, this.other] = [this.other, this.shown];
    return Promise.resolve({});
  };
}

async function opened(server: Server): Promise<Conversation> {
  const conversation = new Conversation(apiOf(server), instance({ sessionId: "s" }));
  await conversation.refresh();
  return conversation;
}

Deno.test("a hit far above is read around; pages join on both sides without a gap, and the end is the end again", async () => {
  const server = new Server(path(400));
  const conversation = await opened(server);
  await conversation.openAt("m100");
  same([idsOf(conversation)[0], idsOf(conversation).at(-1), conversation.hasMore, conversation.hasNewer], [
    "m76",
    "m125",
    true,
    true,
  ]);
  await conversation.loadOlder();
  await conversation.loadNewer();
  same([idsOf(conversation)[0], idsOf(conversation).at(-1)], ["m26", "m175"]);
  for (let count = 0; conversation.hasNewer && count < 20; count += 1) await conversation.loadNewer();
  await conversation.refresh();
  same([conversation.place, idsOf(conversation)], [null, path(400).slice(26)]);
});

Deno.test("a hit among what is loaded asks nothing; one near the end is the end", async () => {
  const server = new Server(path(400));
  const conversation = await opened(server);
  await conversation.openAt("m390");
  same([server.asked.length, conversation.place], [1, null]);
  conversation.forgetOlder(5);
  await conversation.openAt("m380");
  same([conversation.place, idsOf(conversation).at(-1)], [null, "m399"]);
});

Deno.test("reading on holds 600 messages, in either direction", async () => {
  const conversation = await opened(new Server(path(2000)));
  let most = 0;
  for (let count = 0; count < 30; count += 1) {
    await conversation.loadOlder();
    most = Math.max(most, conversation.messages.length);
  }
  same([most <= 650, conversation.hasNewer, conversation.place?.isOther], [true, true, false]);
  const ids = idsOf(conversation);
  same(ids, path(2000).slice(Number(ids[0].slice(1)), Number(ids.at(-1)?.slice(1)) + 1));
  for (let count = 0; conversation.hasNewer && count < 60; count += 1) {
    await conversation.loadNewer();
    most = Math.max(most, conversation.messages.length);
  }
  await conversation.refresh();
  same([most <= 650, conversation.place, idsOf(conversation).at(-1), conversation.hasMore], [
    true,
    null,
    "m1999",
    true,
  ]);
});

Deno.test("frames do not move a reader who is elsewhere, and are there on return", async () => {
  const server = new Server(path(400));
  const conversation = await opened(server);
  await conversation.openAt("m100");
  const before = idsOf(conversation);
  const line = new TestLine();
  conversation.attach(line);
  line.chunk({ type: "start", messageId: "new" });
  line.hear({ type: "cf_agent_chat_messages", messages: path(410).slice(300).map(itemOf) });
  await conversation.refresh();
  same(idsOf(conversation), before);
  server.shown = path(410);
  await conversation.toEnd();
  same([conversation.place, idsOf(conversation).at(-1)], [null, "m409"]);
  conversation.close();
});

Deno.test("another version is only looked at until it is chosen", async () => {
  const server = new Server(path(300), [...path(100), ...path(60, "b")]);
  const conversation = await opened(server);
  await conversation.openAt("b3");
  same([conversation.place?.isOther, conversation.place?.leafId, server.shown.at(-1)], [true, "b59", "m299"]);
  for (let count = 0; conversation.hasNewer && count < 9; count += 1) await conversation.loadNewer();
  same([conversation.place?.isOther, idsOf(conversation).at(-1)], [true, "b59"]); // its end is not the conversation's
  await conversation.goOnHere();
  same([conversation.place, server.shown.at(-1), idsOf(conversation).at(-1)], [null, "b59", "b59"]);
});

Deno.test("a page that comes too late for the place is dropped", async () => {
  const server = new Server(path(400));
  const conversation = await opened(server);
  await conversation.openAt("m100");
  const quick = server.messages;
  let arrive = () => {};
  server.messages = async (...wanted) => {
    const answer = await quick(...wanted);
    await new Promise<void>((done) => (arrive = done));
    return answer;
  };
  const late = conversation.loadNewer();
  await Promise.resolve();
  server.messages = quick;
  await conversation.openAt("m300");
  arrive();
  await late;
  same(idsOf(conversation), path(400).slice(276, 326));
});

Deno.test("a snippet is cut at its highlights, and whole whatever they are", () => {
  same(segmentsOf("a fox ran", [[2, 5]]), [{ text: "a ", isHit: false }, { text: "fox", isHit: true }, {
    text: " ran",
    isHit: false,
  }]);
  const joined = (ranges: number[][]) => segmentsOf("a fox ran", ranges).map(({ text }) => text).join("");
  same([[], [[0, 9]], [[5, 2]], [[2, 99]], [[4, 6], [2, 5]], [[-3, 2]]].map(joined), Array(6).fill("a fox ran"));
  same([[[5, 2]], [[2, 99]], [[-3, 2]]].map((ranges) => segmentsOf("a fox ran", ranges).some(({ isHit }) => isHit)), [
    false,
    false,
    false,
  ]);
});

Deno.test("a hit names its message, and its history when that is not the current one", () => {
  const raw: Schemas["SearchHitOut"] = {
    agent: "Assistant",
    path: null,
    leaf_id: null,
    instance_id: "i",
    session_id: "s",
    message_id: "m/1",
    title: null,
    role: "user",
    created_at: "2026-05-20",
    snippet: "",
    highlights: [],
    is_on_path: null,
    is_current_session: true,
  };
  const [here, there] =
    fromSearch({ items: [raw, { ...raw, is_current_session: false, is_on_path: false }], is_partial: true }).hits;
  same([hitAddress("/", here), hitAddress("/", there)], ["/c/i?at=m%2F1", "/c/i?at=m%2F1&in=s"]);
  same([here.isOtherVersion, there.isOtherVersion], [false, true]);
});
