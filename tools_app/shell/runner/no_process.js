// just-bash looks for Node's `process`, whose environment it may not see here. Imported before it.
Object.defineProperty(globalThis, "process", { value: undefined, configurable: true, writable: true });
