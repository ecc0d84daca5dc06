// Conversations of other products: choose a file, see what is in it, import it, see what was left out.

import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { type ArchiveImport, ArchivesApi } from "../net/archives_api.ts";
import type { Api } from "../net/api.ts";
import type { DialogProps } from "../store/dialogs.ts";
import type { Agent } from "../store/types.ts";
import { Dialog } from "./dialog.tsx";

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

interface Props extends DialogProps<true> {
  api: Api;
  agents: readonly Agent[];
  current: string;
  /** Something was added to the list. */
  onAdded: () => void;
}

export function ImportArchive({ api, agents, current, onAdded, close }: Props) {
  const archives = useRef(new ArchivesApi(api)).current;
  const [limit, setLimit] = useState(0);
  const [row, setRow] = useState<ArchiveImport | null>(null);
  const [upload, setUpload] = useState<{ name: string; fraction: number } | null>(null);
  const [problem, setProblem] = useState("");
  const [agent, setAgent] = useState(current);
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
  const choose = (file: File | undefined) => {
    if (!file) return;
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
  const canStart = row !== null && (row.status === "ready" || row.status === "stopped") &&
    (row.preview?.conversation_count ?? 0) > 0;
  const actions = canStart
    ? <button type="submit" class="button is-primary">{t("imports.start")}</button>
    : row && IS_BUSY.has(row.status)
    ? (
      <button type="button" class="button" onClick={() => void attempt(() => archives.stop(row.id))}>
        {t("imports.stop")}
      </button>
    )
    : undefined;
  return (
    <Dialog
      title={t("imports.title")}
      actions={actions}
      onSubmit={() => void (canStart && attempt(() => archives.start(row.id, agent)))}
      close={close}
    >
      {limit > 0 && <p class="muted">{t("imports.help", { size: megabytes(limit) })}</p>}
      {limit > 0 && !upload && !(row && IS_BUSY.has(row.status)) && <FileChoice choose={choose} />}
      {upload && <Progress label={t("imports.uploading", { name: upload.name })} value={upload.fraction} />}
      {problem && <p role="alert" class="is-error">{problem}</p>}
      {row && !upload && <Row row={row} />}
      {canStart && agents.length > 1 && (
        <p>
          <label>
            {t("imports.agent")}{" "}
            <select value={agent} onChange={(event) => setAgent(event.currentTarget.value)}>
              {agents.map(({ name, title }) => <option key={name} value={name}>{title}</option>)}
            </select>
          </label>
        </p>
      )}
    </Dialog>
  );
}

function FileChoice({ choose }: { choose: (file: File | undefined) => void }) {
  return (
    <p>
      <input
        type="file"
        accept=".zip,.json,application/zip,application/json"
        aria-label={t("imports.choose")}
        onChange={(event) => choose(event.currentTarget.files?.[0])}
      />
    </p>
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
