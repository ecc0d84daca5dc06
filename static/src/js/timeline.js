// The conversation as a list on the page: keyed message views, what is on its way, and a line that says what goes on.

import { h, icon, renew, setChildren, setText } from "./dom.js";
import { notice } from "./dialogs.js";
import { MessageView } from "./message_view.js";
import { Scroll } from "./scroll.js";
import { linesOf } from "../app/store/overlays.ts";
import { statusOf } from "../app/store/status.ts";
import { SummaryLines } from "./summary_view.js";

const CHUNK_PAUSE = 40; // chunks come faster than eyes read
const QUIET_LOOK = 1_000; // also the step of a countdown
const MOST_KEPT = 600; // messages in the page while its end is shown
const KEPT = 200;

export class Timeline {
  #views = new Map();
  #dirty = new Set();
  #frame = 0;
  #isStale = true;
  #pause = 0;
  #observer;

  /** `elements`: {scroller, list, status, more, newer, down}. `act(name, message, detail)` does what a button asks for. */
  constructor(elements, { act, filesBase }) {
    this.elements = elements;
    this.scroll = new Scroll(elements.scroller, (isFollowing) => this.#onFollow(isFollowing));
    this.scroll.watch(elements.list);
    this.context = { act, filesBase, onPaint: (change) => this.#paint(change) };
    this.summaries = new SummaryLines(this.context);
    elements.down.addEventListener("click", () => this.#toEnd());
    setInterval(() => this.conversation?.running && this.#drawStatus(), QUIET_LOOK); // silence is no event
    elements.more.addEventListener("click", () => this.#older());
    elements.newer.addEventListener("click", () => this.#newer());
    this.#observer = new IntersectionObserver(
      (entries) => entries.forEach((entry) => entry.isIntersecting && this.#near(entry.target)),
      {
        root: elements.scroller,
        rootMargin: "900px 0px 900px 0px",
      },
    );
    this.#observer.observe(elements.more);
    this.#observer.observe(elements.newer);
  }

  /** Show this conversation from now on. */
  show(conversation, outbox, stored) {
    this.stored = stored;
    this.stop?.();
    for (const view of this.#views.values()) view.dispose();
    this.#views.clear();
    this.conversation = conversation;
    this.outbox = outbox;
    this.context.isReadOnly = conversation.instance.isReadOnly;
    this.context.isLast = (message) => conversation.messages.at(-1)?.id === message?.id;
    const off = [
      conversation.on("messages", (detail) => this.#onMessages(detail)),
      conversation.on("message", (id) => this.#touch(id)),
      conversation.on("status", () => this.#later()),
      conversation.on("place", () => this.#later()),
      outbox.on("change", () => this.#later()),
    ];
    this.stop = () => off.forEach((undo) => undo());
    this.draw();
    this.scroll.toEnd();
  }

  #onMessages(detail) {
    if (!detail?.isPrepend && !detail?.isAppend) return this.#later();
    const anchor = detail.isPrepend ? this.elements.list.firstElementChild : this.elements.list.lastElementChild;
    this.scroll.keepPlace(anchor, () => this.draw());
  }

  /** Bring a message into sight and mark it. Whether it is there. */
  reveal(id) {
    this.draw();
    const element = this.#views.get(id)?.element;
    if (!element) return false;
    this.elements.list.querySelector(".is-found")?.classList.remove("is-found");
    element.classList.add("is-found");
    element.tabIndex = -1;
    this.scroll.show(element);
    return element;
  }

  async #toEnd() {
    try {
      await this.conversation.toEnd();
    } catch (error) {
      return notice(error.message);
    }
    this.draw();
    this.scroll.toEnd();
    this.elements.scroller.focus({ preventScroll: true }); // the button goes away: the focus must not
  }

  #touch(id) {
    this.#dirty.add(id);
    this.#pause ||= setTimeout(() => {
      this.#pause = 0;
      this.#schedule();
    }, CHUNK_PAUSE);
  }

  #later() {
    this.#isStale = true;
    this.#schedule();
  }

  #schedule() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      if (this.#isStale) this.draw();
      else this.#drawDirty();
    });
  }

  /** A chunk changes one message: the others are not even looked at. */
  #drawDirty() {
    for (const id of this.#dirty) {
      const view = this.#views.get(id);
      const message = this.conversation.messages.findLast((item) => item.id === id);
      if (view && message) view.update(message);
    }
    this.#dirty.clear();
    this.#drawStatus();
  }

  #paint(change) {
    change();
    if (!this.scroll.isFollowing) this.elements.down.classList.add("has-news");
    this.scroll.follow();
  }

  draw() {
    this.#isStale = false;
    const { conversation, outbox } = this;
    const isElsewhere = Boolean(conversation.place);
    this.scroll.isHeld = isElsewhere;
    if (this.scroll.isFollowing && !isElsewhere && conversation.messages.length > MOST_KEPT) {
      conversation.forgetOlder(KEPT);
    }
    const elements = [];
    const ids = new Set();
    const put = (message, extra) => {
      if (ids.has(message.id)) return;
      ids.add(message.id);
      elements.push(this.#view(message, extra).element);
    };
    const { messages, queued } = conversation;
    outbox.settle(new Set([...messages, ...queued].map((message) => message.id)), conversation.readAt);
    const onTheirWay = isElsewhere ? [] : outbox.entries.filter((entry) => entry.shown);
    const lines = linesOf(messages, this.stored.compactions);
    for (const message of messages) {
      // An answer may come before the page was read again: what it answers stands above it all the same.
      const asked = onTheirWay.find((entry) => conversation.streams.get(entry.requestId)?.message === message);
      if (asked) put(asked.shown, pendingNote(asked));
      put(message);
      elements.push(...this.summaries.after(lines.get(message.id) ?? []));
    }
    this.summaries.keep(new Set([...lines.values()].flat().map((item) => item.compaction.id)));
    for (const message of queued) {
      put(message, message.isStopped ? undefined : queuedNote(message, conversation.running));
    }
    for (const entry of onTheirWay) put(entry.shown, pendingNote(entry));
    for (const [id, view] of this.#views) if (!ids.has(id)) this.#drop(id, view);
    setChildren(this.elements.list, elements);
    this.#dirty.clear();
    this.elements.more.hidden = !conversation.hasMore;
    this.elements.newer.hidden = !conversation.hasNewer;
    this.#drawDown();
    this.#drawStatus();
    if (this.switched && document.activeElement === document.body) this.#focusSwitched();
    this.scroll.follow();
  }

  #view(message, extra) {
    let view = this.#views.get(message.id);
    if (!view) this.#views.set(message.id, view = new MessageView(message, this.context));
    const isSame = view.message === message && !this.#dirty.has(message.id) && view.drawnParts === message.parts;
    if (
      !isSame || message.isLive || extra || view.drawnExtra || view.drawnTurn !== message.turn ||
      view.drawnSiblings !== message.siblings || view.drawnLive !== message.isLive
    ) {
      view.update(message, extra);
    }
    Object.assign(view, {
      drawnParts: message.parts,
      drawnExtra: extra,
      drawnTurn: message.turn,
      drawnSiblings: message.siblings,
      drawnLive: message.isLive,
    });
    return view;
  }

  /** Put the focus on the sibling switch of a message that has just taken another's place. */
  focusSwitch(id, name) {
    this.switched = { id, name };
    addEventListener("pointerdown", () => (this.switched = null), { once: true });
    this.draw();
    this.#focusSwitched();
  }

  /** A page or transcript that was under way may draw the message anew, once or twice: the focus comes along. */
  #focusSwitched() {
    const { id, name } = this.switched;
    const element = this.#views.get(id)?.element;
    const wanted = element?.querySelector(`.siblings [aria-label="${name}"]:enabled`) ??
      element?.querySelector(".siblings button:enabled");
    wanted?.focus();
  }

  #drop(id, view) {
    view.dispose();
    this.#views.delete(id);
  }

  #drawStatus() {
    const status = statusOf(this.conversation, this.outbox, this.stored);
    const element = this.elements.status;
    element.hidden = !status;
    if (!status) return void (this.statusKey = "");
    const key = JSON.stringify([status.kind, status.text, status.detail, status.actions?.map((action) => action.name)]);
    if (key === this.statusKey) return;
    this.statusKey = key;
    element.className = `status is-${status.kind}`;
    const buttons = (status.actions ?? []).map(({ name, label }) =>
      h("button", {
        type: "button",
        class: "button",
        dataset: { act: name },
        text: label,
        onclick: () => this.context.act(name),
      })
    );
    renew(element, [
      h("p", {}, status.kind === "error" ? icon("alert") : null, h("span", { text: status.text })),
      ...(status.detail ? [h("p", { class: "muted", text: status.detail })] : []),
      ...(buttons.length ? [h("p", { class: "status-actions" }, buttons)] : []),
    ]);
  }

  #drawDown() {
    this.elements.down.hidden = this.scroll.isFollowing && !this.conversation?.hasNewer;
  }

  #onFollow(isFollowing) {
    this.#drawDown();
    if (!isFollowing) return;
    this.elements.down.classList.remove("has-news");
    this.#later(); // what is far above may go
  }

  #near(button) {
    if (button === this.elements.more) this.#older();
    else this.#newer();
  }

  async #older() {
    const { conversation } = this;
    if (!conversation?.hasMore || conversation.isLoadingOlder) return;
    await this.#load(this.elements.more, "Earlier messages", () => conversation.loadOlder());
  }

  async #newer() {
    const { conversation } = this;
    if (!conversation?.hasNewer || conversation.isLoadingNewer) return;
    await this.#load(this.elements.newer, "Later messages", () => conversation.loadNewer());
  }

  async #load(button, label, load) {
    try {
      await load();
      setText(button, label);
    } catch {
      return setText(button, `${label} could not be loaded. Try again`);
    }
    // The observer tells of changes only: look again in case the button is still near.
    this.#observer.unobserve(button);
    this.#observer.observe(button);
  }
}

function queuedNote(message, running) {
  const isBehind = running && (message.turn ? message.turn.id !== running.turnId : running.message);
  return { note: isBehind ? "Queued behind the answer above" : "Sent", state: "queued" };
}

function pendingNote(entry) {
  if (entry.state === "refused") return { note: `Not sent: ${entry.error}`, state: entry.state };
  if (entry.state === "waiting") return { note: "Will be sent when the server can be reached", state: entry.state };
  return { note: entry.state === "accepted" ? "Sent" : "Sending…", state: entry.state };
}
