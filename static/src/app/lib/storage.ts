// What this browser remembers: drafts, unsent messages, small preferences. A full or forbidden storage is not an error.

const PREFIX = "think.";

/** The stored value, or `fallback`. Its shape is the caller's word: only this page writes there. */
export function recall<Value>(key: string, fallback: Value): Value;
export function recall<Value>(key: string): Value | null;
export function recall<Value>(key: string, fallback: Value | null = null): Value | null {
  try {
    const text = localStorage.getItem(PREFIX + key);
    return text === null ? fallback : JSON.parse(text) as Value;
  } catch {
    return fallback;
  }
}

/** Keep a value; null forgets it. Returns whether it is kept. */
export function remember(key: string, value: unknown): boolean {
  try {
    if (value === null || value === undefined) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

/** All that is kept under keys with a beginning: [[rest of the key, value], ...]. */
export function recallAll<Value>(beginning: string): [string, Value | null][] {
  try {
    const start = PREFIX + beginning;
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(start));
    return keys.map((key) => [key.slice(start.length), recall<Value>(key.slice(PREFIX.length))]);
  } catch {
    return [];
  }
}
