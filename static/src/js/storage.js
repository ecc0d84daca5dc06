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
