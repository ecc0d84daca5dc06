// The tree of files: directories are read when they are opened. One row has the focus; arrows move it, as in trees of systems.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { fileSize, fullTime, timeLabel } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import { follow } from "../lib/store.ts";
import type { FileEntry, FilesApi, FileTotals } from "../net/files_api.ts";
import { type FileTree, parentOf, type TreeRow } from "../store/file_tree.ts";
import { useApp } from "../ui/context.ts";
import { Icon } from "../ui/icon.tsx";
import { MenuButton, type MenuEntry } from "../ui/popover.tsx";
import { TypeAhead } from "../ui/type_ahead.ts";
import type { FileActions } from "./file_actions.ts";
import { FileSearch } from "./file_search.tsx";
import { UploadList } from "./file_uploads.tsx";

interface Props {
  tree: FileTree;
  api: FilesApi;
  actions: FileActions;
  open: (path: string) => void;
  /** The file that was open until now; its row gets the focus. */
  last: string;
}

const ARCHIVES = ".zip,.tar,.tgz,.gz,application/zip,application/gzip,application/x-tar";

const keyOf = (row: TreeRow): string => `${row.kind} ${row.path}`;

export function TreeView({ tree, api, actions, open, last: lastFile }: Props) {
  follow(tree);
  const { files: place } = useApp();
  const [query, setText] = useState(place.query);
  const [last, setLast] = useState(lastFile);
  const setQuery = (text: string) => {
    setLast(""); // who types keeps the focus
    setText(place.query = text);
  };
  const show = async (entry: FileEntry) => {
    if (entry.kind !== "directory") return open(entry.path);
    await actions.reveal(entry.path);
    setQuery("");
    setLast(entry.path);
  };
  const { totals, rows } = tree;
  const canWrite = totals?.can_write ?? false;
  const drop = useFileDrop((files, path) => actions.upload(files, path), canWrite);
  return (
    <div class={drop.isOver ? "files-list is-over" : "files-list"} {...drop.handlers}>
      <Toolbar api={api} actions={actions} canWrite={canWrite} isEmpty={rows.length === 0} />
      {totals && <Totals totals={totals} />}
      <UploadList uploads={actions.uploads} />
      {rows.length === 0
        ? (
          <div class="files-empty">
            <p>{t("files.empty")}</p>
            {canWrite && <p class="muted">{t("files.empty-hint")}</p>}
          </div>
        )
        : (
          <FileSearch api={api} query={query} setQuery={setQuery} open={show} last={last}>
            <Tree rows={rows} tree={tree} api={api} actions={actions} open={open} last={last} canWrite={canWrite} />
          </FileSearch>
        )}
      {drop.isOver && <p class="files-drop" aria-hidden="true">{t("files.drop-here")}</p>}
    </div>
  );
}

const FULL = 0.8; // of the room that there is: from here on it is worth a word

function Totals({ totals }: { totals: FileTotals }) {
  const { byte_count: bytes, byte_limit: limit } = totals;
  const files = t("files.count", { count: totals.file_count });
  return (
    <div class="muted files-totals">
      {totals.file_count > 0 && <p>{t("files.totals", { files, size: fileSize(bytes) })}</p>}
      {limit !== null && bytes >= limit * FULL && <p class="is-error">{t("files.room", { size: fileSize(limit) })}</p>}
      {!totals.can_write && <p>{t("files.read-only")}</p>}
    </div>
  );
}

interface ToolbarProps {
  api: FilesApi;
  actions: FileActions;
  canWrite: boolean;
  isEmpty: boolean;
}

function Toolbar({ api, actions, canWrite, isEmpty }: ToolbarProps) {
  const files = useRef<HTMLInputElement>(null);
  const zip = useRef<HTMLInputElement>(null);
  const take = (input: HTMLInputElement, use: (files: File[]) => void) => {
    use([...(input.files ?? [])]);
    input.value = "";
  };
  const label = t("files.new");
  const entries = (): MenuEntry[] => [
    { icon: "file", label: t("files.new-file"), run: () => actions.newFile("/") },
    { icon: "folder", label: t("files.new-directory"), run: () => actions.newDirectory("/") },
    { icon: "open", label: t("files.import-zip"), run: () => zip.current?.click(), isApart: true },
  ];
  return (
    <p class="panel-actions files-actions">
      {canWrite && (
        <>
          <MenuButton
            label={label}
            button={{
              class: "button",
              children: (
                <>
                  <Icon name="plus" />
                  {label}
                </>
              ),
            }}
            entries={entries}
          />
          <button type="button" class="button" onClick={() => files.current?.click()}>
            <Icon name="clip" />
            {t("files.upload")}
          </button>
          <input
            ref={files}
            type="file"
            multiple
            hidden
            data-upload="files"
            onChange={(event) => take(event.currentTarget, (chosen) => actions.upload(chosen, "/"))}
          />
          <input
            ref={zip}
            type="file"
            accept={ARCHIVES}
            hidden
            data-upload="zip"
            onChange={(event) => take(event.currentTarget, ([file]) => file && actions.unpack(file, "/"))}
          />
        </>
      )}
      <button type="button" class="button" onClick={actions.review}>
        <Icon name="check" />
        {t("files.review")}
      </button>
      {!isEmpty && (
        <a class="button" href={api.archiveAddress("/")} download="">
          <Icon name="save" />
          {t("files.save-zip")}
        </a>
      )}
    </p>
  );
}

interface TreeProps extends Props {
  rows: readonly TreeRow[];
  canWrite: boolean;
}

/** The row that the keys act on; `go` moves it, and the focus with it. */
function useCurrentRow(rows: readonly TreeRow[], last: string) {
  const element = useRef<HTMLDivElement>(null);
  const [focused, setFocused] = useState(() => `entry ${last}`);
  const [wish, setWish] = useState(last ? 1 : 0); // grows when the focus is to follow
  useLayoutEffect(() => {
    if (wish) element.current?.querySelector<HTMLElement>('[role=treeitem][tabindex="0"]')?.focus();
  }, [wish]);
  const go = (row: TreeRow | undefined) => {
    if (!row) return;
    setFocused(keyOf(row));
    setWish((count) => count + 1);
  };
  return { element, current: rows.find((row) => keyOf(row) === focused) ?? rows[0], setFocused, go };
}

function Tree({ rows, tree, api, actions, open, last, canWrite }: TreeProps) {
  const { notices } = useApp();
  const { element, current, setFocused, go } = useCurrentRow(rows, last);
  const [typed] = useState(() => new TypeAhead());
  const attempt = async (verb: () => Promise<unknown>) => {
    try {
      await verb();
    } catch (error) {
      notices.fail(error);
    }
  };
  const activate = (row: TreeRow) => {
    if (row.kind === "more") {
      const before = rows.indexOf(row);
      attempt(() => tree.more(row.path)).then(() => go(tree.rows[before]));
    } else if (row.entry?.kind === "directory") attempt(() => tree.toggle(row.path));
    else if (row.entry) open(row.path);
  };
  const remove = async (row: TreeRow) => {
    const at = rows.indexOf(row);
    if (row.entry && await actions.remove(row.entry)) go(tree.rows[Math.min(at, tree.rows.length - 1)]);
  };
  const move = async (row: TreeRow) => {
    const moved = row.entry ? await actions.move(row.entry) : "";
    if (moved) go(tree.rows.find(({ path, kind }) => kind === "entry" && path === moved));
  };
  const change = (row: TreeRow, key: string): boolean => {
    if (!canWrite || !row.entry) return false;
    if (key === "Delete") remove(row);
    else if (key === "F2") move(row);
    else return false;
    return true;
  };
  const sideways = (row: TreeRow, key: string): boolean => {
    const isRightToLeft = getComputedStyle(element.current!).direction === "rtl";
    const opens = key === (isRightToLeft ? "ArrowLeft" : "ArrowRight");
    if (!opens && key !== (isRightToLeft ? "ArrowRight" : "ArrowLeft")) return false;
    const isDirectory = row.entry?.kind === "directory";
    if (opens && isDirectory) row.isOpen ? go(rows[rows.indexOf(row) + 1]) : attempt(() => tree.toggle(row.path, true));
    else if (!opens && isDirectory && row.isOpen) attempt(() => tree.toggle(row.path, false));
    else if (!opens) go(rows.find(({ kind, path }) => kind === "entry" && path === aboveOf(row)));
    return true;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (!(event.target as HTMLElement).matches("[role=treeitem]") || !current) return;
    const at = rows.indexOf(current);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    const named = typed.find(event, rows.map(({ entry }) => entry?.name ?? ""));
    const isDone = to !== undefined
      ? (go(rows[to]), true)
      : named >= 0
      ? (go(rows[named]), true)
      : event.key === "Enter" || event.key === " "
      ? (activate(current), true)
      : sideways(current, event.key) || change(current, event.key);
    if (isDone) event.preventDefault();
  };
  return (
    <div class="tree" role="tree" aria-label={t("files.tree")} ref={element} onKeyDown={onKeyDown}>
      {rows.map((row) => (
        <Row
          key={keyOf(row)}
          row={row}
          isCurrent={row === current}
          activate={() => {
            setFocused(keyOf(row));
            activate(row);
          }}
          entries={() => entriesOf(row, { api, actions, canWrite, remove, move })}
        />
      ))}
    </div>
  );
}

const aboveOf = (row: TreeRow): string => row.kind === "entry" ? parentOf(row.path) : row.path;

interface RowProps {
  row: TreeRow;
  isCurrent: boolean;
  activate: () => void;
  entries: () => MenuEntry[];
}

function Row({ row, isCurrent, activate, entries }: RowProps) {
  const { entry, kind, level } = row;
  const indent = { paddingInlineStart: `${0.35 + (level - 1) * 1.1}rem` };
  const place = { "aria-level": level, "aria-setsize": row.size, "aria-posinset": row.position };
  const tab = isCurrent ? 0 : -1;
  if (!entry) {
    return (
      <div role="treeitem" class="tree-row is-quiet" style={indent} tabIndex={tab} {...place} onClick={activate}>
        {t(kind === "more" ? "common.show-more" : "files.empty-directory")}
      </div>
    );
  }
  const isDirectory = entry.kind === "directory";
  const more = t("files.more-for", { name: entry.name });
  return (
    <div
      role="treeitem"
      class="tree-row"
      style={indent}
      tabIndex={tab}
      data-path={entry.path}
      data-directory={isDirectory ? entry.path : parentOf(entry.path)}
      aria-label={labelOf(entry)}
      aria-expanded={isDirectory ? row.isOpen : undefined}
      {...place}
      onClick={(event) => {
        if (!(event.target as HTMLElement).closest("button, [popover]")) activate();
      }}
    >
      <Icon name={isDirectory ? "chevron" : entry.kind === "symlink" ? "link" : "file"} />
      <span class="tree-name">
        <bdi>{withoutTricks(entry.name)}</bdi>
      </span>
      {!isDirectory && (
        <span class="tree-facts">
          <span>{fileSize(entry.size)}</span>
          <time dateTime={entry.modified_at} title={fullTime(entry.modified_at)}>{timeLabel(entry.modified_at)}</time>
        </span>
      )}
      <MenuButton
        label={more}
        button={{
          class: "icon-button",
          "aria-label": more,
          title: more,
          tabIndex: tab,
          children: <Icon name="more" />,
        }}
        entries={entries}
      />
    </div>
  );
}

function labelOf(entry: FileEntry): string {
  if (entry.kind === "directory") return t("files.file-and-size", { name: entry.name, size: t("files.directory") });
  if (entry.kind === "symlink") return t("files.link-to", { name: entry.name, target: entry.target });
  return t("files.file-and-size", { name: entry.name, size: fileSize(entry.size) });
}

interface Doing {
  api: FilesApi;
  actions: FileActions;
  canWrite: boolean;
  remove: (row: TreeRow) => void;
  move: (row: TreeRow) => void;
}

function entriesOf(row: TreeRow, { api, actions, canWrite, remove, move }: Doing): MenuEntry[] {
  const { entry, path } = row;
  if (!entry) return [];
  const isDirectory = entry.kind === "directory";
  const entries: MenuEntry[] = [];
  if (isDirectory && canWrite) {
    entries.push({ icon: "file", label: t("files.file-here"), run: () => actions.newFile(path) });
    entries.push({ icon: "folder", label: t("files.directory-here"), run: () => actions.newDirectory(path) });
    entries.push({ icon: "clip", label: t("files.upload-here"), run: () => chooseFiles(actions, path) });
    entries.push({ icon: "open", label: t("files.import-zip-here"), run: () => chooseZip(actions, path) });
  }
  const href = isDirectory ? api.archiveAddress(path) : api.contentAddress(path, { isDownload: true });
  entries.push({ icon: "save", label: t(isDirectory ? "files.save-zip" : "files.save-file"), href });
  if (entry.kind === "file") {
    entries.push({ icon: "copy", label: t("files.copy-content"), run: () => actions.copyContent(path) });
  }
  entries.push({ icon: "link", label: t("files.copy-path"), run: () => actions.copyPath(path) });
  if (!canWrite) return entries;
  entries.push({ icon: "edit", label: t("files.move"), run: () => move(row), isApart: true });
  entries.push({ icon: "bin", label: t("common.delete"), run: () => remove(row), isDanger: true });
  return entries;
}

const chooseFiles = (actions: FileActions, path: string): void =>
  choose({ multiple: true }, (files) => actions.upload(files, path));

const chooseZip = (actions: FileActions, path: string): void =>
  choose({ accept: ARCHIVES }, ([file]) => file && actions.unpack(file, path));

function choose(kind: { multiple?: boolean; accept?: string }, use: (files: File[]) => void): void {
  const input = document.createElement("input");
  Object.assign(input, { type: "file", ...kind });
  input.addEventListener("change", () => use([...(input.files ?? [])]));
  input.click();
}

/** Files can be dropped on the list, or on one of its directories. */
function useFileDrop(take: (files: File[], directory: string) => void, canWrite: boolean) {
  const [isOver, setOver] = useState(false);
  const hasFiles = (event: DragEvent) => canWrite && event.dataTransfer?.types.includes("Files");
  const handlers = {
    onDragOver: (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(true);
    },
    onDragLeave: (event: DragEvent) => {
      if (!(event.currentTarget as HTMLElement).contains(event.relatedTarget as Node)) setOver(false);
    },
    onDrop: (event: DragEvent) => {
      setOver(false);
      const files = [...(event.dataTransfer?.files ?? [])];
      if (!hasFiles(event) || !files.length) return;
      event.preventDefault();
      const row = (event.target as HTMLElement).closest<HTMLElement>("[data-directory]");
      take(files, row?.dataset.directory ?? "/");
    },
  };
  useEffect(() => () => setOver(false), []);
  return { isOver, handlers };
}
