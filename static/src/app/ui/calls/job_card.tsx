// A call that another process runs: how it stands, how far it is, a way to stop it, and the way to Background.

import { useEffect, useState } from "preact/hooks";
import { t } from "../../lib/i18n.ts";
import { BackgroundApi } from "../../net/background_api.ts";
import { useReading } from "../reading.ts";
import { fiberStanding, isUnderWay, nameOfFiber } from "../../store/background_facts.ts";
import { backgroundPlace } from "../../store/background_place.ts";
import { isSettled } from "../../store/fold.ts";
import { isRecord, textIn } from "../../store/tool_details.ts";
import type { ToolPart } from "../../store/types.ts";
import { JobProgress } from "../job_progress.tsx";
import type { Parts } from "../parts_context.ts";
import { Value } from "../value.tsx";
import { Section } from "./pieces.tsx";

const LOOK_MS = 3_000; // its executor may be anywhere, and says nothing to pages

interface Props {
  context: Parts;
  part: ToolPart;
}

/** Nothing for a call that has run here. */
export function JobCard({ context, part }: Props) {
  const jobId = isRecord(part.output) ? textIn(part.output, "jobId") : "";
  return jobId || !isSettled(part) ? <Job context={context} part={part} jobId={jobId} /> : null;
}

function Job({ context: { app, conversation }, part, jobId }: Props & { jobId: string }) {
  const { id, isReadOnly } = conversation.instance;
  const [api] = useState(() => new BackgroundApi(app.api, id));
  const reading = useReading(conversation, (signal) => api.ofCall(part.toolCallId, jobId, signal));
  const job = reading.value;
  const goesOn = job !== null && isUnderWay(job);
  useEffect(() => {
    if (goesOn) reading.watch(LOOK_MS);
  }, [job]);
  if (!job) return null;
  const { text, mood } = fiberStanding(job);
  const show = () => {
    backgroundPlace.enter(id);
    backgroundPlace.open(job.id);
    app.panel.open("background");
  };
  const stop = async () => {
    const title = t("background.stop-title", { name: nameOfFiber(job).slice(0, 60) });
    const question = { title, text: t("background.stop-text"), confirm: t("background.stop"), isDanger: true };
    if (!await app.dialogs.ask("confirm", question)) return;
    await api.cancel(job.id).catch(() => undefined); // how it stands is read anew, whatever came of it
    await reading.again();
  };
  return (
    <Section title={t("calls.job")}>
      <p>
        <span class={`tools-state ${mood}`} role="status">{text}</span>
      </p>
      {job.progress && <JobProgress progress={job.progress} />}
      {job.result !== null && <Value value={job.result} />}
      <p class="panel-actions">
        <button type="button" class="button" onClick={show}>{t("calls.job-open")}</button>
        {goesOn && !isReadOnly && !job.is_stopping && (
          <button type="button" class="button" onClick={stop}>{t("background.stop")}</button>
        )}
      </p>
    </Section>
  );
}
