// Entry of a conversation's page in the administration: what models wrote is shown as the page of people shows it.

import { renderMarkdown } from "./lib/markdown.ts";

for (const element of document.querySelectorAll<HTMLElement>(".think-role-assistant > .think-text")) {
  element.replaceChildren(...renderMarkdown(element.textContent ?? ""));
  element.classList.add("is-markdown");
}
