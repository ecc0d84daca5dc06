// The smallest emitter that does: one listener set a name, a listener that throws does not stop the others.

export class Emitter {
  #listeners = new Map();

  on(name, listener) {
    if (!this.#listeners.has(name)) this.#listeners.set(name, new Set());
    this.#listeners.get(name).add(listener);
    return () => this.#listeners.get(name).delete(listener);
  }

  emit(name, detail) {
    for (const listener of [...(this.#listeners.get(name) ?? [])]) {
      try {
        listener(detail);
      } catch (error) {
        console.error(error);
      }
    }
  }
}
