// Files that could not be uploaded yet, in this browser's database: they survive a reload and go out with their message. A message
// names one by an address of its own, `kept:…`, until it is uploaded.

import { newId } from "./ids.ts";

const PREFIX = "kept:";
const STORE = "files";
const UNUSED_MS = 3_600_000; // a tab may still be writing the draft that names it

interface Kept {
  file: File;
  at: number;
}

export const isKept = (url: string): boolean => url.startsWith(PREFIX);

let opened: Promise<IDBDatabase> | null = null;

function database(): Promise<IDBDatabase> {
  return opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open("think", 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => {
      opened = null;
      reject(request.error);
    };
  });
}

async function ask<Value>(mode: IDBTransactionMode, act: (store: IDBObjectStore) => IDBRequest<Value>): Promise<Value> {
  const transaction = (await database()).transaction(STORE, mode);
  const request = act(transaction.objectStore(STORE));
  return await new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve(request.result);
    transaction.onabort = transaction.onerror = () => reject(transaction.error);
  });
}

/** Keep a file; resolves to its address once it is stored. Rejects where the browser has no room or no database. */
export async function keepFile(file: File): Promise<string> {
  const url = PREFIX + newId("file");
  await ask("readwrite", (store) => store.put({ file, at: Date.now() } satisfies Kept, url));
  return url;
}

/** The file at an address; null where it is not kept any more. */
export async function keptFile(url: string): Promise<File | null> {
  const kept = await ask<Kept | undefined>("readonly", (store) => store.get(url));
  return kept?.file ?? null;
}

export async function forgetFile(url: string): Promise<void> {
  await ask("readwrite", (store) => store.delete(url));
}

/** Forget what neither a draft nor a message on its way names: `named` is all that the browser remembers of these. */
export async function forgetUnnamed(named: string): Promise<void> {
  const keys = await ask("readonly", (store) => store.getAllKeys()) as string[];
  for (const key of keys.filter((url) => !named.includes(url))) {
    const kept = await ask<Kept | undefined>("readonly", (store) => store.get(key));
    if (kept && kept.at < Date.now() - UNUSED_MS) await forgetFile(key);
  }
}
