// Stands for the package of this name in the page's bundle. markdown-it decodes character references with it, and it brings the
// table of all 2,231 of them: 70 kB of script, for what every browser knows. Here the browser is asked, by way of the sanitiser,
// the only one that the page's policy lets make markup of text.

import DOMPurify from "dompurify";

const REFERENCE = /&(?:#x[0-9a-f]{1,6}|#[0-9]{1,7}|[a-z][a-z0-9]{1,31});/gi;
const known = new Map();

function decoded(reference) {
  let text = known.get(reference);
  if (text === undefined) {
    text = DOMPurify.sanitize(reference, { RETURN_DOM_FRAGMENT: true }).textContent;
    known.set(reference, text);
  }
  return text;
}

/** The text with the characters that its references stand for; unknown references stay as they are. */
export const decodeHTML = (text) => text.replace(REFERENCE, decoded);
export const decodeHTMLStrict = decodeHTML;
