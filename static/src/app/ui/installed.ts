// The page and its service worker: what a notification leads to is shown in the page that is open.

import { forgetUnnamed } from "../lib/kept_files.ts";
import { recallAll } from "../lib/storage.ts";
import { onNotification, registerWorker } from "../lib/worker.ts";
import type { App } from "../store/app.ts";

export function install(app: App): void {
  onNotification((address) => {
    const route = app.router.read(address);
    app.router.push(route);
    app.show(route);
  });
  const drafts = [...recallAll("outbox."), ...recallAll("draft.")];
  forgetUnnamed(JSON.stringify(drafts)).catch(() => {}); // no database, no kept files
  void registerWorker(app.boot.urls.worker);
}
