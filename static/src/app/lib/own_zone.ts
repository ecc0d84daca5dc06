// The time zone of the person at this page: the one that they chose in their settings, else the browser's.

const COOKIE = /(?:^|;\s*)think_zone="?([^";]*)/;

let ofBrowser = "";
let chosen: string | null = null; // not read yet

/** The time zone of this device. */
export function browserZone(): string {
  return ofBrowser ||= new Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
}

/** The zone in which times are shown and schedules are read. */
export function ownZone(): string {
  chosen ??= typeof document === "undefined" ? "" : COOKIE.exec(document.cookie)?.[1] ?? "";
  return chosen || browserZone();
}

/** The person has chosen another zone; "" for the browser's. The server has set the cookie. */
export function chooseZone(zone: string): void {
  chosen = zone;
}
