// What this browser remembers: drafts, unsent messages, small preferences. A full or forbidden storage is not an error.

const PREFIX = "think.";

/** The stored value, or `fallback`. */
export function recall(key, fallback = null) {
  try {
    const text = localStorage.getItem(PREFIX + key);
    return text === null ? fallback : JSON.parse(text);
  } catch {
    return fallback;
  }
}

/** Keep a value; null forgets it. */
export function remember(key, value) {
  try {
    if (value === null || value === undefined) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

/** All that is kept under keys with a beginning: [[rest of the key, value], ...]. */
export function recallAll(beginning) {
  try {
    const start = PREFIX + beginning;
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(start));
    return keys.map((key) => [key.slice(start.length), recall(key.slice(PREFIX.length))]);
  } catch {
    return [];
  }
}
