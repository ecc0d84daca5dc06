// One load of one page without a browser: the document is happy-dom's, sockets and requests are Deno's own.
//
// Arguments: the bundle. The page's address is Deno's `--location`. Reads jobs from standard input, one JSON object a
// line: `{id, code, argument}`, where `code` is a function; writes its value, and what sockets do, as JSON lines.

import { Window } from "happy-dom";

const encoder = new TextEncoder();

function say(what: Record<string, unknown>) {
  const line = encoder.encode(`${JSON.stringify(what)}\n`);
  for (let written = 0; written < line.length;) written += Deno.stdout.writeSync(line.subarray(written));
}

const page = new Window({ url: location.href });
page.document.body.innerHTML = '<div id="root"></div>';
for (const name of ["document", "HTMLElement", "HTMLIFrameElement", "Element", "Node", "MutationObserver"] as const) {
  Object.defineProperty(globalThis, name, { value: page[name], configurable: true, writable: true });
}
Object.defineProperty(globalThis, "window", { value: globalThis, configurable: true });
console.log = console.info = console.debug = console.error;

const Plain = WebSocket;
let count = 0;

class Watched extends Plain {
  #number = ++count;
  constructor(address: string | URL, protocols?: string | string[]) {
    super(address, protocols);
    say({ socket: this.#number, opened: String(address) });
    this.addEventListener("message", (event) => say({ socket: this.#number, received: event.data }));
  }
  override send(data: string) {
    say({ socket: this.#number, sent: data });
    super.send(data);
  }
}
Object.defineProperty(globalThis, "WebSocket", { value: Watched, configurable: true, writable: true });

globalThis.addEventListener("error", (event) => {
  event.preventDefault();
  say({ failed: String(event.error) });
});
globalThis.addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  say({ failed: String(event.reason) });
});

await import(Deno.args[0]);
say({ loaded: true });

let rest = "";
for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + text).split("\n");
  rest = lines.pop()!;
  for (const line of lines) {
    const { id, code, argument } = JSON.parse(line);
    try {
      say({ id, value: await (0, eval)(`(${code})`)(argument) });
    } catch (error) {
      say({ id, error: String(error) });
    }
  }
}
Deno.exit(0);
