// How the person is called on this page.

import { Store } from "../lib/store.ts";

export class Person extends Store {
  name: string;
  #account: string;

  /** `account`: the name of the account, where the person has chosen none. */
  constructor(name: string, account: string) {
    super();
    this.name = name || account;
    this.#account = account;
  }

  /** The person has chosen another name; "" for the one of the account. */
  call(name: string): void {
    this.name = name || this.#account;
    this.changed();
  }
}
