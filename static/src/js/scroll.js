// Where the reader is: at the end, and then the page follows; or further up, and then it stays where it is.

const NEAR = 64;

export class Scroll {
  #frame = 0;

  /** `onChange(isFollowing)` is called when the reader leaves or comes back to the end. */
  constructor(scroller, onChange) {
    this.scroller = scroller;
    this.onChange = onChange;
    this.isFollowing = true;
    this.isHeld = false; // the end of what is loaded is not the end of the conversation: there is nothing to follow
    scroller.addEventListener("scroll", () => this.#look(), { passive: true });
    scroller.addEventListener("wheel", (event) => event.deltaY < 0 && this.#leave(), { passive: true });
    scroller.addEventListener("keydown", (event) => ["PageUp", "Home", "ArrowUp"].includes(event.key) && this.#leave());
    scroller.addEventListener("touchmove", () => this.#look(), { passive: true });
    new ResizeObserver(() => this.#resized()).observe(scroller);
    this.content = new ResizeObserver(() => this.#resized());
  }

  /** Watch the growing content: whatever makes it taller, an image or a font, the end stays in sight. */
  watch(content) {
    this.content.disconnect();
    this.content.observe(content);
  }

  get distance() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight;
  }

  /** Whether the reader can be anywhere but at the end. */
  get #hasRoom() {
    return this.scroller.scrollHeight > this.scroller.clientHeight + NEAR;
  }

  /** Go to the end if that is where the reader is. */
  follow() {
    if (!this.isFollowing || this.isHeld || this.#frame) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      if (this.isFollowing && !this.isHeld) this.#jump();
    });
  }

  /** Bring one element into the middle, and again when those around it have got their real heights. */
  show(element) {
    this.#set(!this.#hasRoom);
    const go = () => {
      // Not scrollIntoView: that moves every box around it too, those that never scroll among them.
      const room = Math.max(16, (this.scroller.clientHeight - element.offsetHeight) / 2);
      this.scroller.scrollTop += element.getBoundingClientRect().top - this.scroller.getBoundingClientRect().top - room;
      this.lastTop = this.scroller.scrollTop;
    };
    go();
    let frames = 3;
    const again = () => {
      if (!element.isConnected || this.isFollowing) return;
      go();
      if (--frames) requestAnimationFrame(again);
      else if (this.distance < NEAR) this.#set(true); // it stands at the end
    };
    requestAnimationFrame(again);
  }

  toEnd() {
    this.#set(true);
    this.#jump();
  }

  /** Change what is above the reader without moving what they read. */
  keepPlace(anchor, change) {
    const before = anchor?.getBoundingClientRect().top ?? 0;
    this.scroller.style.overflowAnchor = "none";
    change();
    if (anchor?.isConnected) this.scroller.scrollTop += anchor.getBoundingClientRect().top - before;
    this.scroller.style.overflowAnchor = "";
  }

  #jump() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.lastTop = this.scroller.scrollTop;
  }

  #leave() {
    if (this.#hasRoom) this.#set(false);
  }

  #resized() {
    if (!this.#hasRoom) this.#set(true); // all of it is seen
    this.follow();
  }

  #look() {
    const top = this.scroller.scrollTop;
    const wentUp = top < (this.lastTop ?? 0) - 2;
    this.lastTop = top;
    if (this.distance < NEAR && !wentUp) this.#set(true);
    else if (wentUp && this.distance > NEAR) this.#set(false);
  }

  #set(isFollowing) {
    if (this.isFollowing === isFollowing) return;
    this.isFollowing = isFollowing;
    this.onChange(isFollowing);
  }
}
