// The source of an extension, which its list leaves out.

import { useEffect, useState } from "preact/hooks";
import { messageOf } from "../net/api.ts";
import type { Extension, ExtensionDetail } from "../net/tools_api.ts";
import type { Tools } from "./tools.tsx";

/** An extension with its source, read again with each version. */
export function useDetail(api: Tools["api"], extension: Extension) {
  const [detail, setDetail] = useState<ExtensionDetail | null>(null);
  const [problem, setProblem] = useState("");
  const [attempts, setAttempts] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    setProblem("");
    api.extension(extension, abort.signal).then(
      setDetail,
      (error) => abort.signal.aborted || setProblem(messageOf(error)),
    );
    return () => abort.abort();
  }, [extension.revision, attempts]);
  return { detail, problem, again: () => setAttempts(attempts + 1) };
}
