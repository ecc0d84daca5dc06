// The smallest emitter that does: a set of listeners for each name; a listener that throws does not stop the others.

/** Names of events, each with the type of what it tells. Where that may be undefined, the detail can be left out. */
export type EventMap = object;

/** What `emit` is given beside the name: the detail may be missing where its type allows it. */
export type Detail<Events extends EventMap, Name extends keyof Events> = undefined extends Events[Name]
  ? [detail?: Events[Name]]
  : [detail: Events[Name]];

/** What can be listened to. */
export interface Listenable<Events extends EventMap> {
  on<Name extends keyof Events>(name: Name, listener: (detail: Events[Name]) => void): () => void;
}

export class Emitter<Events extends EventMap> implements Listenable<Events> {
  readonly #listeners: { [Name in keyof Events]?: Set<(detail: Events[Name]) => void> } = {};

  /** Listen. Returns the function that ends it. */
  on<Name extends keyof Events>(name: Name, listener: (detail: Events[Name]) => void): () => void {
    const listeners = this.#listeners[name] ??= new Set();
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  emit<Name extends keyof Events>(name: Name, ...[detail]: Detail<Events, Name>): void {
    for (const listener of [...(this.#listeners[name] ?? [])]) {
      try {
        listener(detail as Events[Name]); // left out only where its type has undefined
      } catch (error) {
        console.error(error);
      }
    }
  }
}
