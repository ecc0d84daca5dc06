// @ts-check
/**
 * Text of a script and the bytes of its files: what is no UTF-8 survives the way from one to the other and back.
 *
 * Texts of JavaScript cannot hold such a byte. Here it is a half of a pair alone (U+DC80 to U+DCFF, as Python's
 * `surrogateescape` has it), which no text in UTF-8 contains, and becomes the byte again where a text is written. Imported
 * before just-bash, whose decoders and encoders are these: its own take such a byte for a letter of Latin-1, or for U+FFFD.
 */

const { TextDecoder, TextEncoder } = globalThis;
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();
const ESCAPES = 0xdc00;
const ESCAPED = /(?<![\ud800-\udbff])[\udc80-\udcff]+/g;

/** The length of the character that begins here; 0 where none does. @param {Uint8Array} bytes @param {number} at */
function lengthAt(bytes, at) {
  const first = bytes[at];
  if (first < 0x80) return 1;
  const length = first >= 0xc2 && first < 0xe0
    ? 2
    : first >= 0xe0 && first < 0xf0
    ? 3
    : first >= 0xf0 && first < 0xf5
    ? 4
    : 0;
  if (length === 0 || at + length > bytes.length) return 0;
  const least = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80; // no longer forms than need be
  const most = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf; // no halves of pairs, nothing beyond Unicode
  if (bytes[at + 1] < least || bytes[at + 1] > most) return 0;
  for (let next = at + 2; next < at + length; next += 1) if ((bytes[next] & 0xc0) !== 0x80) return 0;
  return length;
}

/** The text of bytes; nothing of them is lost, a mark at the beginning neither. @param {Uint8Array} bytes */
export function decode(bytes) {
  try {
    return strict.decode(bytes);
  } catch {
    // there are others
  }
  const parts = [];
  let from = 0;
  for (let at = 0; at < bytes.length;) {
    const length = lengthAt(bytes, at);
    if (length === 0) {
      if (at > from) parts.push(strict.decode(bytes.subarray(from, at)));
      parts.push(String.fromCharCode(ESCAPES + bytes[at]));
      from = at + 1;
    }
    at += length || 1;
  }
  if (from < bytes.length) parts.push(strict.decode(bytes.subarray(from)));
  return parts.join("");
}

/** The bytes of a text: the reverse of `decode`. @param {string} text */
export function encode(text) {
  if (text.isWellFormed()) return encoder.encode(text);
  /** @type {Uint8Array[]} */
  const parts = [];
  let from = 0;
  for (const { 0: escaped, index } of text.matchAll(ESCAPED)) {
    parts.push(encoder.encode(text.slice(from, index)));
    parts.push(Uint8Array.from(escaped, (half) => half.charCodeAt(0) - ESCAPES));
    from = index + escaped.length;
  }
  parts.push(encoder.encode(text.slice(from)));
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

Object.assign(globalThis, { StrictTextDecoder: TextDecoder });
globalThis.TextDecoder = class extends TextDecoder {
  /** @override @param {AllowSharedBufferSource} [input] @param {TextDecodeOptions} [options] */
  decode(input, options) {
    if (this.encoding !== "utf-8" || options?.stream || !(input instanceof Uint8Array)) {
      return super.decode(input, options);
    }
    return decode(input);
  }
};

globalThis.TextEncoder = class extends TextEncoder {
  /** @override @param {string} [text] */
  encode(text = "") {
    return /** @type {any} */ (encode(String(text)));
  }
};
