// What turns have changed in files, by file and by hunk: each is kept, or taken back by itself. Read when it is opened.

import { useState } from "preact/hooks";
import { diffLines } from "../lib/diff.ts";
import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import type { FilesApi, Hunk, Review, ReviewAction, ReviewedFile } from "../net/files_api.ts";
import type { Conversation } from "../store/conversation.ts";
import { useApp } from "../ui/context.ts";
import { DiffView } from "../ui/diff.tsx";
import { Icon } from "../ui/icon.tsx";
import { Failure } from "./panel.tsx";
import { useReading } from "../ui/reading.ts";

interface Props {
  conversation: Conversation;
  api: FilesApi;
  /** Empty for all turns of the conversation. */
  turnIds: readonly string[];
  canWrite: boolean;
  open: (path: string) => void;
}

/** A decision about a file, or about one hunk of it. */
type Decide = (action: ReviewAction, file: ReviewedFile, hunk?: Hunk) => Promise<void>;

export function FileChanges({ conversation, api, turnIds, canWrite, open }: Props) {
  const { announcer, notices, undoing } = useApp();
  const [isBusy, setBusy] = useState(false);
  const reading = useReading(conversation, (signal) => api.review(turnIds, signal));
  const decide: Decide = async (action, file, hunk) => {
    setBusy(true);
    try {
      const review = await api.decide(turnIds, action, file, hunk ? [hunk.id] : []);
      reading.set(review);
      if (review.undone) undoing.keep(review.undone);
      announcer.say(t(DONE[action]));
    } catch (error) {
      notices.fail(error);
      await reading.again(); // as it is by now
    } finally {
      setBusy(false);
    }
  };
  const review = reading.value;
  return (
    <div aria-busy={isBusy}>
      {reading.error && <Failure text={reading.error} again={() => reading.again()} />}
      {!review && !reading.error && <p class="muted" role="status">{t("files.loading")}</p>}
      {review?.files.length === 0 && <p class="muted">{t("files.changes-gone")}</p>}
      {review && review.files.length > 0 && <Summary review={review} address={api.patchAddress(turnIds)} />}
      {review?.files.map((file) => (
        <Change
          key={file.id}
          file={file}
          decide={canWrite && !isBusy ? decide : null}
          canWrite={canWrite}
          open={open}
        />
      ))}
      {review?.has_more && <p class="muted">{t("files.changes-more")}</p>}
    </div>
  );
}

const DONE = { keep: "files.review-kept", reopen: "files.review-reopened", undo: "files.review-undone" } as const;
const FATES = { created: "files.created", updated: "files.updated", deleted: "files.deleted" } as const;
const STANDINGS = {
  changed: "files.standing-changed",
  too_large: "files.standing-too-large",
  no_access: "files.standing-no-access",
  as_before: "files.standing-as-before",
} as const;

function Summary({ review: { files, kept_count }, address }: { review: Review; address: string }) {
  return (
    <div class="review-summary">
      <p class="muted" role="status">{t("files.review-count", { kept: kept_count, count: files.length })}</p>
      <a class="button" href={address} download="">
        <Icon name="save" />
        {t("files.save-patch")}
      </a>
    </div>
  );
}

interface ChangeProps {
  file: ReviewedFile;
  /** Null while a decision is under way, and for those who may not decide. */
  decide: Decide | null;
  canWrite: boolean;
  open: (path: string) => void;
}

function Change({ file, decide, canWrite, open }: ChangeProps) {
  const { path, kind, added, removed, hunks, standing, is_kept: isKept } = file;
  const isWhole = kind !== "updated" || hunks.length < 2; // then the file is the hunk
  return (
    <details class="changed-file" open={!isKept}>
      <summary>
        <bdi>{withoutTricks(path)}</bdi> <span class="muted">{t(FATES[kind])}</span>
        {isKept && <span class="review-mark">{t("files.kept")}</span>}
      </summary>
      <p class="muted tool-note">
        {hunks.length > 0
          ? t("calls.lines-changed", {
            added: t("calls.lines-added", { count: added }),
            removed: t("calls.lines-removed", { count: removed }),
          })
          : t(file.is_cut ? "files.change-too-large" : "files.change-not-shown")}
      </p>
      {standing && <p class="review-standing">{t(STANDINGS[standing])}</p>}
      {hunks.map((hunk) => (
        <HunkView key={hunk.id} file={file} hunk={hunk} decide={decide} canDecide={canWrite && !isWhole} />
      ))}
      <p class="review-verbs">
        {canWrite && <Verbs file={file} isFile={!isWhole} decide={decide} isKept={isKept} />}
        {kind !== "deleted" && <ShowFile path={path} open={open} />}
      </p>
    </details>
  );
}

/** The verb that opens a changed file as it is. */
export function ShowFile({ path, open }: { path: string; open: (path: string) => void }) {
  return (
    <button type="button" class="quiet" aria-label={t("files.show", { name: path })} onClick={() => open(path)}>
      {t("files.show-file")}
    </button>
  );
}

interface HunkProps {
  file: ReviewedFile;
  hunk: Hunk;
  decide: Decide | null;
  canDecide: boolean;
}

function HunkView({ file, hunk, decide, canDecide }: HunkProps) {
  const text = [hunk.place, ...hunk.lines].join("\n");
  const lines = diffLines(text).filter((line) => file.kind === "updated" || line.kind !== "place"); // a whole text begins at its beginning
  return (
    <div class={canDecide && hunk.is_kept ? "hunk is-kept" : "hunk"}>
      <DiffView lines={lines} label={t("calls.diff-of", { path: file.path })} />
      {hunk.ends_open && <p class="muted tool-note">{t("files.no-newline")}</p>}
      {canDecide && (
        <p class="review-verbs">
          <Verbs file={file} hunk={hunk} decide={decide} isKept={hunk.is_kept} />
        </p>
      )}
    </div>
  );
}

interface VerbsProps extends Omit<HunkProps, "hunk" | "canDecide"> {
  hunk?: Hunk;
  isKept: boolean;
  /** Of a file whose hunks have verbs of their own. */
  isFile?: boolean;
}

function Verbs({ file, hunk, decide, isKept, isFile }: VerbsProps) {
  const name = hunk ? `${file.path} ${hunk.place}` : file.path;
  return (
    <>
      <button
        type="button"
        class="quiet"
        aria-label={t(isKept ? "files.reopen-change" : "files.keep-change", { name })}
        disabled={!decide}
        onClick={() => decide?.(isKept ? "reopen" : "keep", file, hunk)}
      >
        {t(isKept ? "files.reopen" : isFile ? "files.keep-file" : "files.keep")}
      </button>
      {!file.standing && (
        <button
          type="button"
          class="quiet"
          aria-label={t("files.undo-change", { name })}
          disabled={!decide}
          onClick={() => decide?.("undo", file, hunk)}
        >
          {t(isFile ? "files.undo-file" : "files.undo")}
        </button>
      )}
    </>
  );
}
