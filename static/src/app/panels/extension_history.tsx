// The versions of an extension, each with what it changed, and what it has called.

import { useEffect, useState } from "preact/hooks";
import { diffLines } from "../lib/diff.ts";
import { fullTime, timeLabel } from "../lib/format.ts";
import { type MessageKey, t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import { messageOf } from "../net/api.ts";
import type { Extension, ExtensionCall, ExtensionVersion, ToolsApi } from "../net/tools_api.ts";
import { DiffView } from "../ui/diff.tsx";
import { Problem } from "../ui/problem.tsx";
import { Failure } from "./panel.tsx";

interface Props {
  api: ToolsApi;
  extension: Extension;
}

const VIAS: Record<ExtensionVersion["via"], MessageKey> = {
  model: "extensions.via-model",
  api: "extensions.via-person",
  code: "extensions.via-code",
  admin: "extensions.via-admin",
};

export function Versions({ api, extension }: Props) {
  const [versions, setVersions] = useState<ExtensionVersion[] | null>(null);
  const [problem, setProblem] = useState("");
  const load = () => {
    setProblem("");
    api.versions(extension).then(setVersions, (error) => setProblem(messageOf(error)));
  };
  useEffect(load, [extension.number]);
  if (problem) return <Failure text={problem} again={load} />;
  if (!versions) return <p class="muted">{t("common.loading")}</p>;
  return (
    <ol class="changes">
      {versions.map((version) => <Version key={version.number} version={version} />)}
    </ol>
  );
}

function Version({ version: { number, version, via, created_at: at, diff } }: { version: ExtensionVersion }) {
  const name = t("extensions.version-number", { number, version: withoutTricks(version) });
  return (
    <li>
      <p>
        {name} <span class="muted">{t(VIAS[via])}</span>{" "}
        <time class="muted" datetime={at} title={fullTime(at)}>{timeLabel(at)}</time>
      </p>
      {diff && <DiffView lines={diffLines(diff)} label={t("extensions.diff-of", { name })} />}
    </li>
  );
}

const PAGE = 50; // as the API gives them

interface Page {
  items: ExtensionCall[];
  next: number | null;
}

export function Calls({ api, extension }: Props) {
  const [page, setPage] = useState<Page | null>(null);
  const [problem, setProblem] = useState("");
  const load = async (before: number | null) => {
    setProblem("");
    try {
      const { items, next_before: next = null } = await api.calls(extension, before);
      setPage((known) => ({ items: before === null ? items : [...known?.items ?? [], ...items], next }));
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  useEffect(() => {
    if (!page || page.items.length <= PAGE) load(null); // who reads on is not taken back to the beginning
  }, [extension]);
  if (problem && !page) return <Failure text={problem} again={() => load(null)} />;
  if (!page) return <p class="muted">{t("common.loading")}</p>;
  const { items, next } = page;
  return (
    <>
      {items.length === 0 && <p class="muted">{t("extensions.no-calls")}</p>}
      <ol class="changes">
        {items.map((call) => (
          <li key={call.id}>
            <p>
              <code>{withoutTricks(call.method)}</code> <bdi>{withoutTricks(call.about)}</bdi>
            </p>
            <p class="muted">
              {call.is_refused && <span class="is-error">{t("extensions.refused")}</span>}
              {call.is_refused && " "}
              {t("extensions.during", { what: withoutTricks(call.during) })}{" "}
              <time datetime={call.created_at} title={fullTime(call.created_at)}>{timeLabel(call.created_at)}</time>
            </p>
            {call.error && <p class="muted" dir="auto">{withoutTricks(call.error)}</p>}
          </li>
        ))}
      </ol>
      <Problem text={problem} />
      {next !== null && <button type="button" class="quiet" onClick={() => load(next)}>{t("common.show-more")}</button>}
    </>
  );
}
