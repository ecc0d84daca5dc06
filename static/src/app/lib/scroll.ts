// Where the reader is: at the end, and then the page follows; or further up, and then it stays where it is.

import { begin } from "./busy.ts";

const NEAR = 64;

export class Scroll {
  readonly scroller: HTMLElement;
  isFollowing = true;
  /** The end of what is loaded is not the end of the conversation: there is nothing to follow. */
  isHeld = false;
  #frame = 0;
  #lastTop = 0;
  #onChange: (isFollowing: boolean) => void;
  #content: ResizeObserver;
  #box: ResizeObserver;

  /** `onChange(isFollowing)` is called when the reader leaves or comes back to the end. */
  constructor(scroller: HTMLElement, onChange: (isFollowing: boolean) => void) {
    this.scroller = scroller;
    this.#onChange = onChange;
    scroller.addEventListener("scroll", () => this.#look(), { passive: true });
    scroller.addEventListener("wheel", (event) => event.deltaY < 0 && this.#leave(), { passive: true });
    scroller.addEventListener("keydown", (event) => ["PageUp", "Home", "ArrowUp"].includes(event.key) && this.#leave());
    scroller.addEventListener("touchmove", () => this.#look(), { passive: true });
    this.#box = new ResizeObserver(() => this.#resized());
    this.#box.observe(scroller);
    this.#content = new ResizeObserver(() => this.#resized());
  }

  /** Watch the growing content: whatever makes it taller, an image or a font, the end stays in sight. */
  watch(content: Element): void {
    this.#content.disconnect();
    this.#content.observe(content);
  }

  get distance(): number {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight;
  }

  /** Whether the reader can be anywhere but at the end. */
  get #hasRoom(): boolean {
    return this.scroller.scrollHeight > this.scroller.clientHeight + NEAR;
  }

  /** Go to the end if that is where the reader is. */
  follow(): void {
    if (!this.isFollowing || this.isHeld || this.#frame) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      if (this.isFollowing && !this.isHeld) this.#jump();
    });
  }

  /** Bring one element into the middle, and again when those around it have got their real heights. */
  show(element: HTMLElement): void {
    this.#set(!this.#hasRoom);
    const go = () => {
      // Not scrollIntoView: that moves every box around it too, those that never scroll among them.
      const room = Math.max(16, (this.scroller.clientHeight - element.offsetHeight) / 2);
      this.scroller.scrollTop += element.getBoundingClientRect().top - this.scroller.getBoundingClientRect().top - room;
      this.#lastTop = this.scroller.scrollTop;
    };
    go();
    let frames = 3;
    const end = begin();
    const again = () => {
      if (!element.isConnected || this.isFollowing) return end();
      go();
      if (--frames) requestAnimationFrame(again);
      else {
        if (this.distance < NEAR) this.#set(true); // it stands at the end
        end();
      }
    };
    requestAnimationFrame(again);
  }

  /** Stop watching. The listeners go with the scroller. */
  dispose(): void {
    cancelAnimationFrame(this.#frame);
    this.#box.disconnect();
    this.#content.disconnect();
  }

  toEnd(): void {
    this.#set(true);
    this.#jump();
  }

  /** Change what is above the reader without moving what they read. */
  keepPlace(anchor: Element | null, change: () => void): void {
    const before = anchor?.getBoundingClientRect().top ?? 0;
    this.scroller.style.overflowAnchor = "none";
    change();
    if (anchor?.isConnected) this.scroller.scrollTop += anchor.getBoundingClientRect().top - before;
    this.scroller.style.overflowAnchor = "";
  }

  #jump(): void {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.#lastTop = this.scroller.scrollTop;
  }

  #leave(): void {
    if (this.#hasRoom) this.#set(false);
  }

  #resized(): void {
    if (!this.#hasRoom) this.#set(true); // all of it is seen
    this.follow();
  }

  #look(): void {
    const top = this.scroller.scrollTop;
    const wentUp = top < this.#lastTop - 2;
    this.#lastTop = top;
    if (this.distance < NEAR && !wentUp) this.#set(true);
    else if (wentUp && this.distance > NEAR) this.#set(false);
  }

  #set(isFollowing: boolean): void {
    if (this.isFollowing === isFollowing) return;
    this.isFollowing = isFollowing;
    this.#onChange(isFollowing);
  }
}

/** The box that scrolls an element up and down; null where only the page does. */
export function scrollerOf(element: Element): HTMLElement | null {
  for (let parent = element.parentElement; parent; parent = parent.parentElement) {
    if (/auto|scroll/.test(getComputedStyle(parent).overflowY) && parent.scrollHeight > parent.clientHeight) {
      return parent;
    }
  }
  return null;
}

/** Bring an element into the middle of its scroller. Nothing else scrolls. */
export function bringIntoSight(element: Element): void {
  const scroller = scrollerOf(element);
  if (!scroller) return;
  const [box, own] = [scroller.getBoundingClientRect(), element.getBoundingClientRect()];
  scroller.scrollTop += own.top - box.top - Math.max(16, (box.height - own.height) / 2);
}

/**
 * Change what is shown without moving what is read: the element at the top of the scroller stays where it is. A reader at
 * the end stays there, because the list follows it.
 */
export function keepReading(scroller: Element | null, change: () => void): void {
  if (!(scroller instanceof HTMLElement)) return change();
  const anchor = firstSeen(scroller);
  const before = anchor?.getBoundingClientRect().top ?? 0;
  scroller.style.overflowAnchor = "none";
  change();
  if (anchor?.isConnected) {
    const moved = anchor.getBoundingClientRect().top - before;
    if (moved) scroller.scrollTop += moved;
  }
  scroller.style.overflowAnchor = "";
}

/** The innermost element that begins in sight, near the top of the scroller. */
function firstSeen(scroller: HTMLElement): Element | null {
  const box = scroller.getBoundingClientRect();
  const x = box.left + box.width / 2;
  for (let y = box.top + 8; y < box.bottom; y += 24) {
    const found = document.elementFromPoint(x, y);
    if (found && found !== scroller && scroller.contains(found) && found.getBoundingClientRect().top >= box.top) {
      return found;
    }
  }
  return null;
}
