// A piece of code as it is shown: its language, two buttons, and the code in a box that scrolls.

import { t } from "./i18n.ts";
import { colourIn } from "./highlight.ts";
import { kindOfLanguage } from "./preview_kinds.ts";

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escape = (text: string): string => text.replace(/[&<>"]/g, (sign) => ENTITIES[sign]);

/** Markup of a code figure. Its code is plain; `dress` colours it. `language` may be "". */
export function codeFigure(code: string, language: string): string {
  const name = language ? t("message.code-in", { language }) : t("message.code");
  const shown = escape(language || t("message.plain-text"));
  return (
    `<figure class="code"><figcaption><span class="code-language">${shown}</span>` +
    (kindOfLanguage(language)
      ? `<button type="button" class="quiet" data-action="preview-code">${escape(t("message.preview-code"))}</button>`
      : "") +
    `<button type="button" class="quiet" data-action="wrap-code">${escape(t("message.wrap-code"))}</button>` +
    `<button type="button" class="quiet" data-action="copy-code">${
      escape(t("message.copy-code"))
    }</button></figcaption>` +
    `<pre tabindex="0" role="region" aria-label="${escape(name)}"><code${
      language ? ` class="language-${escape(language)}"` : ""
    }>${escape(code)}</code></pre></figure>`
  );
}

/** The language of the code in a figure, "" where it has none. */
export function languageIn(code: Element): string {
  return /(?:^| )language-([\w+#.-]+)/.exec(code.className)?.[1] ?? "";
}

/** Colour the code of a figure. */
export const colourFigure = (code: Element): void => colourIn(code, languageIn(code));
