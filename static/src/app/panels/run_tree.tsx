// Agents that work for a conversation, and those that work for them: state and counts, the way into each, and stopping.

import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import { stopRun } from "../net/runs_api.ts";
import { countsText, runGoesOn, type RunNode, treeStanding, whyOf } from "../store/background_facts.ts";
import { textIn } from "../store/tool_details.ts";
import { AgentMark } from "../ui/agent_mark.tsx";
import { useApp } from "../ui/context.ts";
import { Elapsed } from "../ui/elapsed.tsx";
import { RunVerbs } from "../ui/runs/run_verbs.tsx";
import type { Background } from "./background.tsx";

interface Props {
  background: Background;
  nodes: RunNode[];
}

export function RunTree({ background, nodes, isComplete }: Props & { isComplete: boolean }) {
  if (!nodes.length) return null;
  return (
    <section aria-label={t("background.agents")}>
      <h2 class="tools-heading">{t("background.agents")}</h2>
      <Level background={background} nodes={nodes} />
      {!isComplete && <p class="muted">{t("background.tree-cut")}</p>}
    </section>
  );
}

function Level({ background, nodes }: Props) {
  return (
    <ul class="run-tree">
      {nodes.map((node) => <Node key={node.run.id} background={background} node={node} />)}
    </ul>
  );
}

function Node({ background, node: { run, below } }: { background: Background; node: RunNode }) {
  const app = useApp();
  const agent = app.agentOf(run);
  const name = withoutTricks(textIn(run.display ?? {}, "name") || agent.title);
  const { text, mood } = treeStanding(run);
  const why = whyOf(run);
  const goesOn = runGoesOn(run);
  const stop = async () => {
    try {
      await stopRun(app.api, run.id);
    } finally {
      await background.reading.again();
    }
  };
  return (
    <li>
      <div class="run-line">
        <AgentMark agent={{ ...agent, title: name }} />
        <span class="tools-row-text">
          <bdi class="tools-name">{name}</bdi>
          <span class="muted">
            {countsText(run)} {goesOn && <Elapsed since={Date.parse(run.created_at)} />}
          </span>
        </span>
        <span class={`tools-state ${mood}`}>{text}</span>
      </div>
      {why && <p class={run.status === "error" ? "run-why is-error" : "run-why"} dir="auto">{withoutTricks(why)}</p>}
      <RunVerbs
        class="run-verbs"
        name={name}
        childId={run.child_id}
        stop={runGoesOn(run) && !background.isReadOnly ? stop : null}
      />
      {below.length > 0 && <Level background={background} nodes={below} />}
    </li>
  );
}
