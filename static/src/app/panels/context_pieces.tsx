// The pieces of the next model call in full: the system prompt, the tools, summaries, and the messages that are sent.

import { t } from "../lib/i18n.ts";
import { editProject } from "../store/projects.ts";
import { useApp } from "../ui/context.ts";
import { FollowLink } from "../ui/follow_link.tsx";
import { type ContextPreview, kindOf, leftOut, policyText, usageOf } from "../store/context_facts.ts";

const Pre = ({ text }: { text: string }) => <pre class="value" tabIndex={0} dir="auto">{text}</pre>;

export function SystemBody({ context: { system, blocks, loaded } }: { context: ContextPreview }) {
  return (
    <>
      {blocks.map((block) => (
        <div class="context-block" key={block.label}>
          <h3>{block.label}</h3>
          <p class="muted">{[kindOf(block), usageOf(block)].join(" · ")}</p>
          {block.description && <p class="muted" dir="auto">{block.description}</p>}
        </div>
      ))}
      {loaded.length > 0 && <p class="muted">{t("panel.loaded", { documents: loaded.join(", ") })}</p>}
      {system.is_kept && <p class="muted">{t("panel.system-kept")}</p>}
      {system.text ? <Pre text={system.text} /> : <p class="muted">{t("panel.no-system")}</p>}
    </>
  );
}

/** What the person has written in their settings, and the way there. */
export function InstructionsBody({ text }: { text: string }) {
  const app = useApp();
  return (
    <>
      <p class="muted">
        <FollowLink
          href={app.router.address({ page: "settings", section: "instructions" })}
          go={() => app.place.showSettings("instructions")}
        >
          {t("panel.change-instructions")}
        </FollowLink>
      </p>
      <Pre text={text} />
    </>
  );
}

/** What the conversation has from its project, and the way to change it. */
export function ProjectBody({ text, id }: { text: string; id: string | null }) {
  const app = useApp();
  const project = app.list.projects.find((each) => each.id === id);
  return (
    <>
      {project && (
        <p class="muted">
          <button type="button" class="quiet" onClick={() => void editProject(app, project)}>
            {t("panel.change-project")}
          </button>
        </p>
      )}
      <Pre text={text} />
    </>
  );
}

export function ToolList({ tools }: { tools: ContextPreview["tools"] }) {
  if (!tools.length) return <p class="muted">{t("panel.no-tools")}</p>;
  return (
    <>
      <p class="muted">{t("panel.tools-for-model")}</p>
      <ul class="context-list">
        {tools.map((tool) => (
          <li key={tool.name}>
            <p class="context-tool">
              <code>{tool.name}</code>
              <span class="muted">{t("panel.tokens", { count: tool.tokens })}</span>
            </p>
            <p class="muted">{tool.description}</p>
            {tool.refused && <p class="muted">{t("panel.tool-refused")}</p>}
          </li>
        ))}
      </ul>
    </>
  );
}

export function SummaryTexts({ summaries }: { summaries: ContextPreview["summaries"] }) {
  return (
    <>
      {summaries.map((summary, index) => (
        <div class="context-block" key={index}>
          <p class="muted">{t("panel.instead-of", { count: summary.message_count })}</p>
          <Pre text={summary.text} />
        </div>
      ))}
    </>
  );
}

export function TailBody({ context }: { context: ContextPreview }) {
  const { tail } = context;
  const facts = [
    leftOut(tail),
    tail.queued_count > 0 && t("panel.queued-not-counted", { count: tail.queued_count }),
    policyText(context),
  ].filter(Boolean);
  return (
    <>
      {tail.message_count > 0
        ? (
          <>
            <p class="muted">{t("panel.messages-from", { count: tail.message_count })}</p>
            <blockquote dir="auto">{tail.first_text || t("panel.no-text")}</blockquote>
          </>
        )
        : <p class="muted">{t("panel.no-messages")}</p>}
      {facts.map((fact) => <p class="muted" key={fact}>{fact}</p>)}
    </>
  );
}
