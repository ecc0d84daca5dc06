// Entry of the chat page: reads what the server has embedded, and draws the app.

import "@preact/signals"; // views follow what they read
import { render } from "preact";
import { pending, watchState } from "./lib/busy.ts";
import { loadTranslations } from "./lib/translations.ts";
import { readBoot } from "./store/boot.ts";
import { App } from "./store/app.ts";
import { AppView } from "./ui/app.tsx";
import { AppContext } from "./ui/context.ts";

const LANGUAGES: Record<string, () => Promise<void>> = {
  "en-xa": async () => (await import("./messages/pseudo.ts")).usePseudo("en-XA"),
  "ar-xb": async () => (await import("./messages/pseudo.ts")).usePseudo("ar-XB"),
};

const QUIET_MS = 2_500; // the first view is drawn, and the person has begun to read

async function start(): Promise<void> {
  const boot = readBoot();
  if (!boot) return;
  await (LANGUAGES[document.documentElement.lang.toLowerCase()] ?? loadTranslations)();
  const app = new App(boot, async () => (await import("./later/dialogs.ts")).dialogs);
  app.start();
  const root = document.getElementById("app")!;
  root.replaceChildren(); // the skeleton of the first paint
  render(
    <AppContext.Provider value={app}>
      <AppView />
    </AppContext.Provider>,
    root,
  );
  document.documentElement.dataset.ready = "1";
  showState();
  const load = () => pending(import("./later/views.ts")); // a key pressed while it loads would be lost
  setTimeout(() => load().then(({ install }) => install(app)).catch(() => {}), QUIET_MS);
}

/** `data-state` of the root. It says "rest" only when what has come is drawn as well. */
function showState(): void {
  const { dataset } = document.documentElement;
  let news = 0;
  watchState((state) => {
    const mine = ++news;
    dataset.state = "busy";
    if (state === "busy") return;
    const settle = () => mine === news && (dataset.state = state);
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(settle))); // effects of a view come after its frame
  });
}

start();
