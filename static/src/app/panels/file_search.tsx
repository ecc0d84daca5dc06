// Files found by a part of their name: the server looks, while one types, in all directories.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Due } from "../lib/busy.ts";
import { fileSize } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import { messageOf } from "../net/api.ts";
import type { FileEntry, FilesApi, FoundFiles } from "../net/files_api.ts";
import { parentOf } from "../store/file_tree.ts";
import { Icon } from "../ui/icon.tsx";
import { Problem } from "../ui/problem.tsx";

const PAUSE_MS = 200;

interface Props {
  api: FilesApi;
  query: string;
  setQuery: (query: string) => void;
  /** Open what was found: a file, or a directory in the tree. */
  open: (entry: FileEntry) => void;
  /** The file that was open until now; its row gets the focus. */
  last: string;
  /** What stands here while nothing is looked for. */
  children: ComponentChildren;
}

export function FileSearch({ api, query, setQuery, open, last, children }: Props) {
  const field = useRef<HTMLInputElement>(null);
  const wanted = query.trim();
  const clear = () => {
    setQuery("");
    field.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !query) return;
    event.preventDefault(); // the panel stays
    clear();
  };
  return (
    <div onKeyDown={onKeyDown}>
      <p class="files-search">
        <Icon name="search" />
        <input
          type="search"
          ref={field}
          value={query}
          maxLength={200}
          placeholder={t("files.find")}
          aria-label={t("files.find")}
          onInput={(event) => setQuery(event.currentTarget.value)}
        />
      </p>
      {wanted ? <Found api={api} wanted={wanted} open={open} last={last} /> : children}
    </div>
  );
}

interface FoundProps extends Pick<Props, "api" | "open" | "last"> {
  wanted: string;
}

function Found({ api, wanted, open, last }: FoundProps) {
  const [found, setFound] = useState<FoundFiles | null>(null);
  const [error, setError] = useState("");
  const list = useRef<HTMLUListElement>(null);
  const isFirst = useRef(true);
  useEffect(() => {
    const abort = new AbortController();
    const look = () =>
      api.find(wanted, abort.signal).then(
        (answer) => {
          setFound(answer);
          setError("");
        },
        (problem) => abort.signal.aborted || setError(messageOf(problem)),
      );
    const due = new Due();
    due.set(look, isFirst.current ? 0 : PAUSE_MS);
    isFirst.current = false;
    return () => {
      due.clear();
      abort.abort();
    };
  }, [wanted]);
  useLayoutEffect(() => { // back from a file, where one was
    if (found && last) list.current?.querySelector<HTMLElement>(`[data-path="${CSS.escape(last)}"]`)?.focus();
  }, [found !== null]);
  if (error) return <Problem text={error} />;
  return (
    <>
      <p class="muted files-totals" role="status">{found ? summaryOf(found) : t("files.loading")}</p>
      <ul class="files-found" ref={list} aria-label={t("files.found-list")}>
        {found?.items.map((entry) => (
          <li key={entry.path}>
            <button type="button" data-path={entry.path} onClick={() => open(entry)}>
              <Icon name={entry.kind === "directory" ? "folder" : entry.kind === "symlink" ? "link" : "file"} />
              <span class="files-found-name">
                <bdi>{withoutTricks(entry.name)}</bdi>
                <bdi class="muted">{withoutTricks(parentOf(entry.path))}</bdi>
              </span>
              {entry.kind === "file" && <span class="tree-facts">{fileSize(entry.size)}</span>}
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

function summaryOf({ items, is_cut: isCut }: FoundFiles): string {
  if (!items.length) return t("files.found-none");
  return t(isCut ? "files.found-first" : "files.found", { count: items.length });
}
