// Where one reads in a conversation: at the end, which the page follows, or further up, where nothing moves. It holds what was
// found, and the place of the focus when a version takes another's place.

import { Scroll } from "../lib/scroll.ts";
import { Store } from "../lib/store.ts";
import { firstHighlight, highlightWords, wordsOf } from "../lib/words.ts";
import type { Reveal } from "../store/place.ts";
import type { Conversation } from "../store/conversation.ts";

const MOST_KEPT = 600; // messages in the page while its end is shown
const KEPT = 200;

/** Which button of a version switch was pressed. */
export type Step = "previous" | "next";

export class Reader extends Store {
  /** The reader is at the end. */
  isFollowing = true;
  /** Something has come below what is read. */
  hasNews = false;
  /** Id of the message that was looked for and found; stays until the next one. */
  foundId = "";
  /** Its words are marked, so that it need not be marked itself. */
  hasWords = false;
  #conversation: Conversation;
  #scroll: Scroll | null = null;
  #scroller: HTMLElement | null = null;
  #list: HTMLElement | null = null;
  #anchor: { element: Element; top: number } | null = null;
  #taken: Reveal | null = null;
  #switched: { id: string; step: Step } | null = null;

  constructor(conversation: Conversation) {
    super();
    this.#conversation = conversation;
  }

  /** Read in these elements from now on; returns how to stop. */
  attach(scroller: HTMLElement, list: HTMLElement): () => void {
    this.#scroller = scroller;
    this.#list = list;
    const scroll = this.#scroll = new Scroll(scroller, (isFollowing) => this.#onFollow(isFollowing));
    scroll.watch(list);
    const off = this.#conversation.on("moved", ({ how }) => this.#hold(how));
    const forget = () => (this.#switched = null);
    addEventListener("pointerdown", forget);
    return () => {
      off();
      removeEventListener("pointerdown", forget);
      scroll.dispose();
    };
  }

  /** Make a change of the text that grows; the end stays in sight where it was. */
  paint = (change: () => void): void => {
    change();
    if (!this.isFollowing && !this.hasNews) {
      this.hasNews = true;
      this.changed();
    }
    this.#scroll?.follow();
  };

  /** The list was drawn. */
  drawn(): void {
    const scroll = this.#scroll;
    if (!scroll) return;
    const { place, messages } = this.#conversation;
    scroll.isHeld = place !== null;
    this.#restore();
    if (scroll.isFollowing && !place && messages.length > MOST_KEPT) this.#conversation.forgetOlder(KEPT);
    this.focusSwitched();
    scroll.follow();
  }

  /** Go to the end of what is loaded, and stay there. */
  toEnd(): void {
    this.#scroll?.toEnd();
  }

  /** Bring a message into sight and mark it, once for each wish. Whether it is there. */
  reveal(wish: Reveal): boolean {
    if (this.#taken === wish) return true;
    const element = this.#elementOf(wish.messageId);
    if (!element) return false;
    this.#taken = wish;
    this.foundId = wish.messageId;
    this.hasWords = highlightWords(element, wordsOf(wish.query)); // of no words: former marks go
    this.changed();
    element.tabIndex = -1;
    this.#scroll?.show(this.#isTall(element) ? firstHighlight()?.startContainer.parentElement ?? element : element);
    if (!wish.keepsFocus) element.focus({ preventScroll: true });
    return true;
  }

  /** Put the focus on the version switch of a message that takes another's place, as soon as it is there. */
  switchTo(id: string, step: Step): void {
    this.#switched = { id, step };
    this.focusSwitched();
  }

  /** A page or transcript that was under way may draw the message anew, once or twice: the focus comes along. */
  focusSwitched(): void {
    if (!this.#switched || document.activeElement !== document.body) return;
    const { id, step } = this.#switched;
    const element = this.#elementOf(id)?.querySelector(".siblings");
    const wanted = element?.querySelector<HTMLElement>(`[data-step=${step}]:enabled`) ??
      element?.querySelector<HTMLElement>("button:enabled");
    wanted?.focus();
  }

  /** The focus goes to what is read: the control that had it is gone. */
  focus(): void {
    this.#scroller?.focus({ preventScroll: true });
  }

  /** Bring the line of a summary into sight. */
  showSummary(id: string): void {
    const element = this.#list?.querySelector<HTMLElement>(`:scope > [data-compaction="${CSS.escape(id)}"]`);
    if (!element) return;
    this.#scroll?.show(element);
    element.focus({ preventScroll: true });
  }

  #isTall(element: HTMLElement): boolean {
    return element.offsetHeight > (this.#scroller?.clientHeight ?? Infinity);
  }

  #elementOf(id: string): HTMLElement | null {
    return this.#list?.querySelector<HTMLElement>(`:scope > [data-id="${CSS.escape(id)}"]`) ?? null;
  }

  /** The list is about to grow at one of its ends: what stands at that end stays where it is. */
  #hold(how: string): void {
    const element = how === "prepend" ? this.#list?.firstElementChild : this.#list?.lastElementChild;
    if ((how !== "prepend" && how !== "append") || !element) return;
    this.#anchor = { element, top: element.getBoundingClientRect().top };
  }

  #restore(): void {
    const anchor = this.#anchor;
    this.#anchor = null;
    if (!anchor?.element.isConnected || !this.#scroller) return;
    const { style } = this.#scroller;
    style.setProperty("overflow-anchor", "none");
    this.#scroller.scrollTop += anchor.element.getBoundingClientRect().top - anchor.top;
    style.removeProperty("overflow-anchor");
  }

  #onFollow(isFollowing: boolean): void {
    this.isFollowing = isFollowing;
    if (isFollowing) this.hasNews = false;
    this.changed();
    if (isFollowing) this.drawn(); // what is far above may go
  }
}
