// Conversations from a file, of this product or another one: choose it, see what is in it, import it, see what was left out.

import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { type ArchiveImport, ArchivesApi } from "../net/archives_api.ts";
import type { Api, Schemas } from "../net/api.ts";
import type { DialogProps } from "../store/dialog_kinds.ts";
import type { Agent } from "../store/types.ts";
import { Dialog } from "./dialog.tsx";
import { type OwnExport, ownExport } from "./own_export.ts";
import { Problem } from "../ui/problem.tsx";

const LOOK_MS = 700;
const MEGABYTE = 1024 * 1024;
const FEW = 3;
const KINDS = [
  ["file", "imports.left-file"],
  ["hidden", "imports.left-hidden"],
  ["unknown", "imports.left-unknown"],
  ["link", "imports.left-link"],
  ["shortened", "imports.left-shortened"],
  ["empty", "imports.left-empty"],
] as const;
const IS_BUSY = new Set(["reading", "importing"]);

export function ImportArchive({ api, agents, current, onAdded, close }: DialogProps<"import-archive">) {
  const archives = useRef(new ArchivesApi(api)).current;
  const [limit, setLimit] = useState(0);
  const [row, setRow] = useState<ArchiveImport | null>(null);
  const [upload, setUpload] = useState<{ name: string; fraction: number } | null>(null);
  const [problem, setProblem] = useState("");
  const [agent, setAgent] = useState(current);
  const { own, look, start } = useOwnImport(api, onAdded, setProblem);
  const leave = useRef(new AbortController()).current;
  const attempt = async (work: () => Promise<ArchiveImport>) => {
    setProblem("");
    try {
      setRow(await work());
    } catch (error) {
      if (!leave.signal.aborted) setProblem(error instanceof Error ? error.message : String(error));
    }
    setUpload(null);
  };
  useEffect(() => {
    archives.list().then(({ items, max_bytes }) => {
      setLimit(max_bytes);
      setRow(items.find(({ status }) => IS_BUSY.has(status) || status === "ready" || status === "stopped") ?? null);
    }, (error) => setProblem(error.message));
    return () => leave.abort();
  }, []);
  useEffect(() => {
    if (row?.report) onAdded();
    if (!row || !IS_BUSY.has(row.status)) return;
    const look = () => void archives.get(row.id).then(setRow, () => setRow({ ...row })); // the line may come back
    const timer = setTimeout(look, LOOK_MS);
    return () => clearTimeout(timer);
  }, [row]);
  const choose = async (file: File | undefined) => {
    if (!file) return;
    setProblem("");
    if (await look(file)) return;
    if (file.size > limit) {
      setProblem(t("imports.too-large", { size: megabytes(file.size), limit: megabytes(limit) }));
      return;
    }
    setUpload({ name: file.name, fraction: 0 });
    void attempt(async () => {
      if (row) await archives.remove(row.id);
      return await archives.upload(file, leave.signal, (fraction) => setUpload({ name: file.name, fraction }));
    });
  };
  const canStart = own
    ? !own.isBusy && !own.made
    : row !== null && (row.status === "ready" || row.status === "stopped") &&
      (row.preview?.conversation_count ?? 0) > 0;
  const stop = row && !own && IS_BUSY.has(row.status) ? () => void attempt(() => archives.stop(row.id)) : null;
  const open = own?.made ? () => close({ id: own.made!.instance_id }) : null;
  return (
    <Dialog
      title={t("imports.title")}
      actions={canStart || stop || open ? <Actions canStart={canStart} stop={stop} open={open} /> : undefined}
      onSubmit={() => {
        if (!canStart) return;
        if (own) void start(agent);
        else if (row) void attempt(() => archives.start(row.id, agent));
      }}
      close={close}
    >
      {limit > 0 && <p class="muted">{t("imports.help", { size: megabytes(limit) })}</p>}
      {limit > 0 && !upload && !(row && IS_BUSY.has(row.status)) && <FileChoice choose={choose} />}
      {upload && <Progress label={t("imports.uploading", { name: upload.name })} value={upload.fraction} />}
      <Problem text={problem} />
      {own ? <Own own={own} /> : row && !upload && <Row row={row} />}
      {canStart && agents.length > 1 && <AgentChoice agents={agents} agent={agent} choose={setAgent} />}
    </Dialog>
  );
}

function FileChoice({ choose }: { choose: (file: File | undefined) => void }) {
  return (
    <p>
      <input
        type="file"
        accept=".jsonl,.ndjson,.zip,.json,application/x-ndjson,application/zip,application/json"
        aria-label={t("imports.choose")}
        onChange={(event) => void choose(event.currentTarget.files?.[0])}
      />
    </p>
  );
}

/** What the file at hand needs: to be imported, to be stopped, or to be opened. */
function Actions({ canStart, stop, open }: {
  canStart: boolean;
  stop: (() => void) | null;
  open: (() => void) | null;
}) {
  if (canStart) return <button type="submit" class="button is-primary">{t("imports.start")}</button>;
  if (open) return <button type="button" class="button is-primary" onClick={open}>{t("imports.open")}</button>;
  return <button type="button" class="button" onClick={stop!}>{t("imports.stop")}</button>;
}

function AgentChoice({ agents, agent, choose }: {
  agents: readonly Agent[];
  agent: string;
  choose: (name: string) => void;
}) {
  return (
    <p>
      <label>
        {t("imports.agent")}{" "}
        <select value={agent} onChange={(event) => choose(event.currentTarget.value)}>
          {agents.map(({ name, title }) => <option key={name} value={name}>{title}</option>)}
        </select>
      </label>
    </p>
  );
}

/** An export of this product that was chosen. `look`: whether a file is one; `start` imports it. */
function useOwnImport(api: Api, onAdded: () => void, setProblem: (problem: string) => void) {
  const [own, setOwn] = useState<OwnImport | null>(null);
  const look = async (file: File): Promise<boolean> => {
    const found = await ownExport(file).catch(() => null);
    setOwn(found && { ...found, made: null, isBusy: false });
    return found !== null;
  };
  const start = async (agent: string) => {
    if (!own) return;
    setProblem("");
    setOwn({ ...own, isBusy: true });
    try {
      setOwn({ ...own, isBusy: false, made: await api.importConversation(own.file, agent) });
      onAdded();
    } catch (error) {
      setOwn({ ...own, isBusy: false });
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return { own, look, start };
}

interface OwnImport extends OwnExport {
  /** What came of it; null before. */
  made: Schemas["ImportedOut"] | null;
  isBusy: boolean;
}

/** An export of this product: what is in it, and what came of it. */
function Own({ own: { title, messageCount, made, isBusy } }: { own: OwnImport }) {
  if (isBusy) return <Progress label={t("imports.own-importing", { title })} />;
  return (
    <div class="import-found" aria-live="polite">
      <p dir="auto">{t("imports.own", { title, count: messageCount })}</p>
      {made && <p>{t("imports.own-done", { count: made.message_count })}</p>}
      {made && made.left_out.length > 0 && <p>{t("imports.own-left-out", { what: made.left_out.join(", ") })}</p>}
    </div>
  );
}

function Row({ row }: { row: ArchiveImport }) {
  const { preview, report } = row;
  const total = preview?.conversation_count ?? 0;
  if (row.status === "reading") return <Progress label={t("imports.reading", { count: row.seen_count })} />;
  if (row.status === "importing") {
    const seen = Math.min(row.seen_count, total);
    return <Progress label={t("imports.importing", { count: seen, total })} value={total ? seen / total : 0} />;
  }
  const found = report ?? preview;
  const counts = found && [
    report ? t("imports.added", { count: report.added_count }) : t("imports.found", { count: total }),
    ...(found.known_count ? [t("imports.known", { count: found.known_count })] : []),
    ...(found.unreadable_count ? [t("imports.unreadable", { count: found.unreadable_count })] : []),
  ];
  return (
    <div class="import-found" aria-live="polite">
      {row.status === "failed" && <p role="alert" class="is-error">{row.error || t("imports.failed")}</p>}
      {row.status === "stopped" && row.error && <p role="alert" class="is-error">{row.error}</p>}
      {counts && <p>{row.name}: {counts.join(", ")}</p>}
      {found && found.unreadable.length > 0 && <Unreadable items={found.unreadable} />}
      {found && KINDS.some(([kind]) => found.left_out[kind]) && (
        <details>
          <summary>{t("imports.left-out")}</summary>
          <ul>
            {KINDS.filter(([kind]) => found.left_out[kind]).map(([kind, words]) => (
              <li key={kind}>{t(words, { count: found.left_out[kind] })}</li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

/** A few are there at once; of many the list is opened, so that it does not push the buttons away. */
function Unreadable({ items }: { items: NonNullable<ArchiveImport["preview"]>["unreadable"] }) {
  const list = <ul>{items.map(({ name, reason }, place) => <li key={place}>{name}: {reason}</li>)}</ul>;
  if (items.length <= FEW) return list;
  return (
    <details>
      <summary>{t("imports.unreadable-list")}</summary>
      {list}
    </details>
  );
}

function Progress({ label, value }: { label: string; value?: number }) {
  return (
    <p>
      <span>{label}</span> <progress max={1} value={value} aria-label={label} />
    </p>
  );
}

const megabytes = (bytes: number): number => Math.ceil(bytes / MEGABYTE);
