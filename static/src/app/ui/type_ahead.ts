// Finding an item of a list by typing the first letters of its name, as menus of the system do.

const PAUSE_MS = 700; // after it, a letter begins another name

export class TypeAhead {
  #typed = "";
  #at = 0;

  /** The index of the name that what was typed begins; -1 where the key is no letter, or nothing begins so. */
  find(event: KeyboardEvent, names: readonly string[], now = Date.now()): number {
    const isLetter = event.key.length === 1 && event.key !== " " && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (!isLetter) return -1;
    this.#typed = (now - this.#at > PAUSE_MS ? "" : this.#typed) + event.key.toLocaleLowerCase();
    this.#at = now;
    return names.findIndex((name) => name.toLocaleLowerCase().startsWith(this.#typed));
  }
}
