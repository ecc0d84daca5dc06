// The page's side of its service worker (`worker.ts`): registering it.

interface Policies {
  createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): {
    createScriptURL(url: string): string;
  };
}

/** Register it, once. Resolves to null where the browser has none, or refuses. */
export async function registerWorker(address: string): Promise<ServiceWorkerRegistration | null> {
  if (!("serviceWorker" in navigator)) return null; // also where the page did not come over HTTPS
  try {
    return await navigator.serviceWorker.register(trusted(address)) ?? null;
  } catch {
    return null; // in a private window, or switched off: the page works without
  }
}

let policy: ReturnType<Policies["createPolicy"]> | null = null;

/** The policy of these pages lets nothing but one address become a worker. */
function trusted(address: string): string {
  const policies = (globalThis as { trustedTypes?: Policies }).trustedTypes;
  policy ??= policies?.createPolicy("think-worker", {
    createScriptURL: (url) => {
      if (url !== address) throw new TypeError("another address");
      return url;
    },
  }) ?? null;
  return policy ? policy.createScriptURL(address) : address;
}
