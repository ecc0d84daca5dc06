// What the next model call will contain: how much, of what, and each piece in full. Asked of the server, never guessed here.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { money } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import {
  type ContextPreview,
  count,
  fullness,
  percent,
  type Piece,
  piecesOf,
  type Usage,
} from "../store/context_facts.ts";
import { useApp } from "../ui/context.ts";
import { IconButton } from "../ui/icon.tsx";
import { Problem } from "../ui/problem.tsx";
import { InstructionsBody, ProjectBody, SummaryTexts, SystemBody, TailBody, ToolList } from "./context_pieces.tsx";
import { Failure } from "./panel.tsx";
import { useReading } from "../ui/reading.ts";
import type { PanelProps } from "./registry.ts";

export function ContextPanel({ conversation }: PanelProps) {
  const { api, announcer } = useApp();
  const { id } = conversation.instance;
  const reading = useReading(conversation, async (signal) => {
    if (!id) return null;
    const [context, usage] = await Promise.all([
      api.context(id, { signal }) as unknown as Promise<ContextPreview>,
      (api.usage(id) as unknown as Promise<Usage>).catch(() => null), // what was spent is not what this view is for
    ]);
    return { context, usage };
  }, { isBranchDependent: true });
  if (!id) return <p class="muted">{t("panel.not-begun")}</p>;
  if (!reading.value) {
    return reading.error
      ? <Failure text={reading.error} again={() => reading.again()} />
      : <p class="muted">{t("panel.context-loading")}</p>;
  }
  const { context, usage } = reading.value;
  const full = fullness(context);
  const again = async () => {
    await reading.again();
    if (reading.value) announcer.say(fullness(reading.value.context).text);
  };
  const [system, person, project, tools, summary, messages] = piecesOf(context);
  return (
    <div class="context">
      <div class="panel-line">
        <h2>{t("panel.next-call")}</h2>
        <IconButton icon="again" label={t("panel.read-again")} onClick={again} />
      </div>
      <p class={full.isTight ? "context-sum is-tight" : "context-sum"}>{full.text}</p>
      <Bar context={context} />
      <p class="muted">{noteOf(context)}</p>
      <PieceFold piece={system}>{() => <SystemBody context={context} />}</PieceFold>
      {context.instructions && (
        <PieceFold piece={person}>{() => <InstructionsBody text={context.instructions!.text} />}</PieceFold>
      )}
      {context.project && (
        <PieceFold piece={project}>
          {() => <ProjectBody text={context.project!.text} id={conversation.instance.projectId} />}
        </PieceFold>
      )}
      <PieceFold piece={tools} number={context.tools.length}>{() => <ToolList tools={context.tools} />}</PieceFold>
      {context.summaries.length > 0 && (
        <PieceFold piece={summary}>{() => <SummaryTexts summaries={context.summaries} />}</PieceFold>
      )}
      <PieceFold piece={messages} number={context.tail.message_count}>{() => <TailBody context={context} />}</PieceFold>
      {usage && <Spent usage={usage} />}
      <p class="muted context-how">{t("panel.context-how")}</p>
      <Problem text={reading.error} />
    </div>
  );
}

/** Shares of the call. Where it is not known how much the model can read, there is nothing to be full of: the bar is empty. */
function Bar({ context }: { context: ContextPreview }) {
  const limit = context.context_tokens ?? 0;
  const pieces = limit ? piecesOf(context).filter((piece) => piece.tokens > 0) : [];
  const whole = Math.max(limit, context.total_tokens, 1);
  const said = pieces.map((piece) => `${piece.label} ${percent(piece.tokens / whole)}`).join(", ");
  const label = limit ? t("panel.bar", { pieces: said || t("panel.bar-nothing") }) : t("panel.bar-unknown");
  return (
    <div class={limit ? "context-bar" : "context-bar is-unknown"} role="img" aria-label={label}>
      {pieces.map(({ key, tokens }) => <Share key={key} name={key} tokens={tokens} />)}
      <Share name="free" tokens={Math.max(0, whole - context.total_tokens)} />
    </div>
  );
}

function Share({ name, tokens }: { name: string; tokens: number }) {
  const element = useRef<HTMLSpanElement>(null);
  useEffect(() => element.current!.style.setProperty("flex-grow", String(tokens)), [tokens]);
  return <span class={`is-${name}`} ref={element} />;
}

interface FoldProps {
  piece: Piece;
  number?: number;
  children: () => ComponentChildren;
}

function PieceFold({ piece, number, children }: FoldProps) {
  const [isOpen, setOpen] = useState(false);
  const label = number === undefined ? piece.label : `${piece.label} (${count(number)})`;
  return (
    <details class="context-piece" data-key={piece.key} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class={`swatch is-${piece.key}`} aria-hidden="true" />
        <span class="context-label">{label}</span>
        <span class="context-tokens">
          {count(piece.tokens)}
          <span class="visually-hidden">{t("panel.tokens-hidden")}</span>
        </span>
      </summary>
      <div class="context-body">{isOpen && children()}</div>
    </details>
  );
}

function noteOf(context: ContextPreview): string {
  const model = t("panel.model", { model: context.model });
  if (!context.usable_tokens) return model;
  const room = t(context.is_automatic ? "panel.summarised-beyond" : "panel.not-summarised-beyond", {
    count: context.usable_tokens,
  });
  return `${room} ${model}`;
}

function Spent({ usage }: { usage: Usage }) {
  const { total, sub_agents: below } = usage;
  if (!total.input_tokens && !total.output_tokens) return null;
  const facts = [
    t("panel.spent", { read: total.input_tokens, written: total.output_tokens }),
    Number(total.cost) > 0 && money(total.cost),
  ].filter(Boolean).join(" · ");
  return (
    <>
      <h2>{t("panel.so-far")}</h2>
      <p>{facts}</p>
      {below.session_count > 0 && <p class="muted">{t("panel.with-sub-agents")}</p>}
    </>
  );
}
