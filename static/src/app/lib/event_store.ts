// A store that also tells of events: of what happens once, where a view would come too late to read it from the state.

import { type Detail, Emitter, type EventMap, type Listenable } from "./events.ts";
import { Store } from "./store.ts";

export class EventStore<Events extends EventMap> extends Store implements Listenable<Events> {
  readonly events = new Emitter<Events>();

  /** Listen. Returns the function that ends it. */
  on<Name extends keyof Events>(name: Name, listener: (detail: Events[Name]) => void): () => void {
    return this.events.on(name, listener);
  }

  emit<Name extends keyof Events>(name: Name, ...detail: Detail<Events, Name>): void {
    this.events.emit(name, ...detail);
  }
}
