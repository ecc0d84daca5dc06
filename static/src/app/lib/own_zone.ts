// The time zone of the person at this page, as the browser has it.

export const ownZone = (): string => new Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
