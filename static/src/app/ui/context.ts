// The app, for every view.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { App } from "../store/app.ts";

export const AppContext = createContext<App | null>(null);

/** The page's state. */
export function useApp(): App {
  const app = useContext(AppContext);
  if (!app) throw new Error("A view is drawn outside of the app.");
  return app;
}
