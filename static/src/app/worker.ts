// The service worker of the page. It keeps files of the build, whose names have the hash of their content, and one page that
// it shows where the server cannot be reached. It never keeps a page or an answer of the server: those are of a person.
// It shows what the server pushes: a push has no words of a conversation, only what kind of thing waits, and where.

/** What the server has put before this script. */
interface Built {
  /** Another one for each build: what is kept of the build before goes. */
  version: string;
  /** The beginning of the addresses of files. */
  files: string;
  /** What is kept when the worker is installed: the page without a line, and what it looks like. */
  offline: string;
  offlineFiles: string[];
  home: string;
  icon: string;
}

interface Waiting extends Event {
  waitUntil(work: Promise<unknown>): void;
}

interface Fetching extends Waiting {
  request: Request;
  preloadResponse: Promise<Response | undefined>;
  respondWith(answer: Promise<Response>): void;
}

interface Pushed extends Waiting {
  data: { json(): unknown } | null;
}

interface Clicked extends Waiting {
  notification: Notification;
}

interface OpenPage {
  url: string;
  focused: boolean;
  focus(): Promise<unknown>;
  navigate(address: string): Promise<unknown>;
}

interface WorkerScope {
  BUILT: Built;
  location: Location;
  registration: ServiceWorkerRegistration;
  clients: {
    claim(): Promise<void>;
    matchAll(wanted: { type: "window"; includeUncontrolled: boolean }): Promise<OpenPage[]>;
    openWindow(address: string): Promise<unknown>;
  };
  skipWaiting(): Promise<void>;
  addEventListener<Kind extends Event>(name: string, act: (event: Kind) => void): void;
}

const scope = self as unknown as WorkerScope;
const { BUILT } = scope;
const PREFIX = "think-";
const KEPT = PREFIX + BUILT.version;
const HAS_HASH = /\.[0-9a-f]{12}\.\w+$/;

scope.addEventListener<Waiting>("install", (event) => event.waitUntil(install()));
scope.addEventListener<Waiting>("activate", (event) => event.waitUntil(activate()));
scope.addEventListener<Fetching>("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET") return;
  if (request.mode === "navigate") event.respondWith(page(event));
  else if (isOfBuild(new URL(request.url))) event.respondWith(file(request));
});
scope.addEventListener<Pushed>("push", (event) => event.waitUntil(show(event)));
scope.addEventListener<Clicked>("notificationclick", (event) => event.waitUntil(follow(event.notification)));

async function install(): Promise<void> {
  const cache = await caches.open(KEPT);
  const own = BUILT.offlineFiles.filter((url) => new URL(url, scope.location.href).origin === scope.location.origin);
  await cache.addAll([BUILT.offline, ...own].map((url) => new Request(url, { cache: "reload" })));
  await scope.skipWaiting(); // files of other builds are fetched under other names: no page gets another one's
}

async function activate(): Promise<void> {
  for (const name of await caches.keys()) {
    if (name.startsWith(PREFIX) && name !== KEPT) await caches.delete(name);
  }
  await scope.registration.navigationPreload?.enable();
  await scope.clients.claim();
}

const isOfBuild = (url: URL): boolean =>
  url.origin === scope.location.origin && url.pathname.startsWith(BUILT.files) && HAS_HASH.test(url.pathname);

/** A page of the server, always as it is now. */
async function page({ request, preloadResponse }: Fetching): Promise<Response> {
  try {
    return await preloadResponse ?? await fetch(request);
  } catch {
    return await caches.match(BUILT.offline) ?? Response.error();
  }
}

/** A file under this name never changes. */
async function file(request: Request): Promise<Response> {
  const kept = await caches.match(request);
  if (kept) return kept;
  const answer = await fetch(request);
  if (answer.ok && answer.type === "basic") {
    const cache = await caches.open(KEPT);
    await cache.put(request, answer.clone()).catch(() => {}); // no room: it is fetched again
  }
  return answer;
}

/** A push: its words, and the path that it leads to. */
interface News {
  title: string;
  body: string;
  path: string;
  tag: string;
}

async function show(event: Pushed): Promise<void> {
  const news = event.data?.json() as News | undefined;
  if (!news) return;
  const { title, body, tag, path } = news;
  if ((await openPages()).some(({ focused, url }) => focused && isAt(url, path))) return; // the person looks at it
  await scope.registration.showNotification(title, { body, tag, icon: BUILT.icon, badge: BUILT.icon, data: { path } });
}

const openPages = (): Promise<OpenPage[]> => scope.clients.matchAll({ type: "window", includeUncontrolled: true });

const isAt = (url: string, path: string): boolean =>
  path.startsWith(`${BUILT.home}c/`) && new URL(url).pathname === new URL(path, url).pathname;

/** To what it is about: in a page that is open, else in a new one. Paths lead nowhere but into this site. */
async function follow(notification: Notification): Promise<void> {
  notification.close();
  const address = new URL(String(notification.data?.path ?? ""), new URL(BUILT.home, scope.location.href));
  if (address.origin !== scope.location.origin) return;
  const [there] = (await openPages()).filter(({ url }) => new URL(url).pathname.startsWith(BUILT.home));
  if (!there) return void await scope.clients.openWindow(address.href);
  await there.focus().catch(() => {}); // a system may not let it come to the front
  if (there.url === address.href) return;
  // Loaded anew: a page that has just been opened does not listen yet, and drafts are kept.
  await there.navigate(address.href).catch(() => scope.clients.openWindow(address.href));
}
