// Ids that the browser gives: of messages and requests, before the server has seen them. They make a repeated send harmless.

const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";

/** A prefixed random id: `msg_7f3k…`. */
export function newId(prefix: string): string {
  const bytes = crypto.getRandomValues(new Uint8Array(20));
  return `${prefix}_${Array.from(bytes, (byte) => ALPHABET[byte & 31]).join("")}`;
}
