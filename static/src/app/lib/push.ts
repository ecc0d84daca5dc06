// Pushes to this browser, as far as they are the browser's: whether it can, whether it may, its subscription, and its name.

import { t } from "./i18n.ts";

/** "unsupported": it cannot; "no-worker": the page's worker is not there; "refused": the person has forbidden it. */
export type PushProblem = "unsupported" | "no-worker" | "refused";

/** What the server needs of a subscription. */
export interface Subscribed {
  endpoint: string;
  public_key: string;
  auth_secret: string;
}

async function registration(): Promise<ServiceWorkerRegistration | null> {
  return await navigator.serviceWorker?.getRegistration() ?? null;
}

/** The address of this browser's subscription, as the server knows it: the SHA-256 of it; empty without one. */
export async function ownFingerprint(): Promise<string> {
  const subscription = await (await registration())?.pushManager?.getSubscription();
  if (!subscription) return "";
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(subscription.endpoint));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Ask the person, and subscribe. `serverKey`: as the server has it. Resolves to what the server needs, or what is wrong. */
export async function subscribe(serverKey: string): Promise<Subscribed | PushProblem> {
  if (!("PushManager" in globalThis) || !("Notification" in globalThis)) return "unsupported";
  if (await Notification.requestPermission() !== "granted") return "refused";
  const worker = await registration();
  if (!worker) return "no-worker";
  const before = await worker.pushManager.getSubscription();
  if (before && !hasKey(before, serverKey)) await before.unsubscribe(); // of another installation at this address
  const subscription = await worker.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: serverKey,
  });
  const { keys = {} } = subscription.toJSON();
  return { endpoint: subscription.endpoint, public_key: keys.p256dh ?? "", auth_secret: keys.auth ?? "" };
}

const hasKey = ({ options }: PushSubscription, key: string): boolean =>
  options.applicationServerKey !== null && encoded(options.applicationServerKey) === key;

function encoded(bytes: ArrayBuffer): string {
  const text = btoa(String.fromCharCode(...new Uint8Array(bytes)));
  return text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** Receive no more, whatever the server knows. */
export async function unsubscribe(): Promise<void> {
  await (await (await registration())?.pushManager?.getSubscription())?.unsubscribe();
}

const BROWSERS: readonly [RegExp, string][] = [
  [/Edg\//, "Edge"],
  [/OPR\//, "Opera"],
  [/SamsungBrowser\//, "Samsung Internet"],
  [/Firefox\/|FxiOS\//, "Firefox"],
  [/Chrome\/|CriOS\//, "Chrome"],
  [/Safari\//, "Safari"],
];
const SYSTEMS: readonly [RegExp, string][] = [
  [/iPhone/, "iPhone"],
  [/iPad/, "iPad"],
  [/Android/, "Android"],
  [/Windows/, "Windows"],
  [/CrOS/, "ChromeOS"],
  [/Mac OS X|Macintosh/, "Mac"],
  [/Linux/, "Linux"],
];

/** What this device is called in the list, as far as a browser tells. */
export function deviceName(agent = navigator.userAgent): string {
  const named = (names: readonly [RegExp, string][]) => names.find(([pattern]) => pattern.test(agent))?.[1];
  return t("notifications.device", {
    browser: named(BROWSERS) ?? t("notifications.unknown-browser"),
    system: named(SYSTEMS) ?? t("notifications.unknown-system"),
  });
}
