// The page once it is at rest: its service worker, and kept files that nothing names any more.

import { forgetUnnamed } from "../lib/kept_files.ts";
import { recallAll } from "../lib/storage.ts";
import { registerWorker } from "../lib/worker.ts";
import type { App } from "../store/app.ts";

export function install(app: App): void {
  const drafts = [...recallAll("outbox."), ...recallAll("draft.")];
  forgetUnnamed(JSON.stringify(drafts)).catch(() => {}); // no database, no kept files
  void registerWorker(app.boot.urls.worker);
}
