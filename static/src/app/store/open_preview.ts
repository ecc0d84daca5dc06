// From a piece of code in a message to its preview in the panel.

import { languageIn } from "../lib/code.ts";
import type { App } from "./app.ts";
import { placeOfCode } from "./previews.ts";

/** `button`: in the figure of the code. */
export function openPreview(app: App, button: HTMLElement): void {
  const code = button.closest("figure.code")?.querySelector("code");
  const { conversation } = app;
  if (!code) return;
  const messageId = button.closest<HTMLElement>("[data-id]")?.dataset.id ?? "";
  const block = placeOfCode(conversation, messageId, languageIn(code), code.textContent ?? "");
  if (!block) return;
  app.files.preview(conversation.instance.id, block);
  app.panel.open("files");
}
