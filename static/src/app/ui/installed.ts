// The page and its service worker: what a notification leads to is shown in the page that is open.

import { onNotification, registerWorker } from "../lib/worker.ts";
import type { App } from "../store/app.ts";

export function install(app: App): void {
  onNotification((address) => {
    const route = app.router.read(address);
    app.router.push(route);
    app.show(route);
  });
  void registerWorker(app.boot.urls.worker);
}
