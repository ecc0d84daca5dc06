// Entry of the page of a link for readers: the messages as the chat page draws them, from what the server has embedded. Nothing
// is asked of the server, unless a person who has signed in goes on in a conversation of their own.

import "@preact/signals"; // views follow what they read
import { render } from "preact";
import { pending, watchState } from "./lib/busy.ts";
import { loadLaterTranslations, loadTranslations } from "./lib/translations.ts";
import "./messages/later.ts"; // before any of the views
import { App } from "./store/app.ts";
import { readBoot, type SharedLink } from "./store/boot.ts";
import { showShared } from "./store/shared.ts";
import { AppContext } from "./ui/context.ts";
import { SharedView } from "./ui/shared_view.tsx";

async function start(): Promise<void> {
  const boot = readBoot();
  const link: SharedLink | undefined = boot?.shared;
  if (!boot || !link) return;
  await loadTranslations();
  await loadLaterTranslations(); // a link shows what the chat page opens later
  const app = new App(boot, async () => (await import("./later/dialogs.ts")).dialogs);
  showShared(app);
  const root = document.getElementById("app")!;
  root.replaceChildren(); // the skeleton of the first paint
  render(
    <AppContext.Provider value={app}>
      <SharedView link={link} />
    </AppContext.Provider>,
    root,
  );
  document.documentElement.dataset.ready = "1";
  watchState((state) => document.documentElement.dataset.state = state);
  pending(import("./later/calls.ts")).catch(() => {}); // what opens in a message
}

start();
