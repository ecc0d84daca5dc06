// Addresses of the page: which conversation, at which message, or another page of the product.

/** Where an address leads: a message to open a conversation at. */
export interface MessagePlace {
  messageId: string;
  sessionId: string;
}

export type Route =
  | { page: "list" }
  | { page: "approvals" }
  | { page: "work" }
  | { page: "settings"; section: string } // "": all of them
  | { page: "thread"; id: string }
  | { page: "new"; agent: string; project?: string }
  | { page: "conversation"; id: string; place: MessagePlace | null };

export class Router {
  readonly base: string;

  /** `base`: the path of the page with the list. `go` shows a route when the person walks through the history. */
  constructor(base: string, go: (route: Route) => void) {
    this.base = base;
    addEventListener("popstate", () => go(this.read(new URL(location.href))));
  }

  read(url: URL): Route {
    const path = url.pathname.slice(this.base.length);
    if (/^work\/?$/.test(path)) return { page: "work" };
    if (/^approvals\/?$/.test(path)) return { page: "approvals" };
    if (/^usage\/?$/.test(path)) return { page: "settings", section: "usage" };
    const settings = /^settings(?:\/([^/]*))?\/?$/.exec(path);
    if (settings) return { page: "settings", section: decodeURIComponent(settings[1] ?? "") };
    const id = /^c\/([^/]+)\/?$/.exec(path)?.[1];
    if (!id) return threadIn(path, url.hash) ?? { page: "list" };
    const asked = (name: string) => url.searchParams.get(name) ?? "";
    if (id === "new") return { page: "new", agent: asked("agent"), project: asked("project") };
    return { page: "conversation", id: decodeURIComponent(id), place: placeOf(url) };
  }

  address(route: Route): string {
    if (route.page === "list") return this.base;
    if (route.page === "approvals" || route.page === "work") return `${this.base}${route.page}`;
    if (route.page === "settings") {
      return `${this.base}settings${route.section ? `/${encodeURIComponent(route.section)}` : ""}`;
    }
    if (route.page === "thread") return `${this.base}#${encodeURIComponent(route.id)}`;
    if (route.page === "new") {
      const { agent, project } = route;
      const query = new URLSearchParams({ ...(agent ? { agent } : {}), ...(project ? { project } : {}) });
      return `${this.base}c/new${query.size ? `?${query}` : ""}`;
    }
    return `${this.base}c/${encodeURIComponent(route.id)}${queryOf(route.place)}`;
  }

  push(route: Route): void {
    history.pushState(null, "", this.address(route));
  }

  replace(route: Route): void {
    history.replaceState(null, "", this.address(route));
  }
}

/** The thread that an address of the list names: `#` and its short id, if that is no place of the page itself. */
function threadIn(path: string, hash: string): Route | null {
  const id = /^#(?:thread[-/=])?([\w-]+)$/.exec(hash)?.[1];
  return id && path === "" && !document.getElementById(hash.slice(1)) ? { page: "thread", id } : null;
}

/** The message that an address leads to: `?at=` and, in a history that is not the current one, `&in=`. */
export function placeOf(url: URL | Location): MessagePlace | null {
  const query = new URLSearchParams(url.search);
  const messageId = query.get("at");
  return messageId ? { messageId, sessionId: query.get("in") ?? "" } : null;
}

function queryOf(place: MessagePlace | null): string {
  if (!place) return "";
  return `?${new URLSearchParams({ at: place.messageId, ...(place.sessionId ? { in: place.sessionId } : {}) })}`;
}
