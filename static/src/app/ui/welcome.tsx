// An empty conversation: who would answer, and what one may begin with.

import { useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import type { App } from "../store/app.ts";
import type { Conversation } from "../store/conversation.ts";
import { AgentMark } from "./agent_mark.tsx";
import { lazy } from "./lazy.tsx";

const WelcomeOffers = lazy(async () => (await import("../later/views.ts")).WelcomeOffers);
const ThreadsWelcome = lazy(async () => (await import("../later/threads.ts")).ThreadsWelcome);

export function Welcome({ app, conversation }: { app: App; conversation: Conversation }) {
  const agent = app.agentOf(follow(conversation).instance);
  return (
    <section id="welcome" class="welcome">
      <p class="welcome-agent">
        <AgentMark agent={agent} />
        <span dir="auto">{agent.title}</span>
      </p>
      {agent.thread_agent ? <ThreadsWelcome /> : <h2>{t("message.welcome")}</h2>}
      <p class="muted" dir="auto">{agent.description || t("message.welcome-text")}</p>
      {agent.suggestions.length > 0 && (
        <ul class="suggestions">
          {agent.suggestions.map((text) => (
            <li key={text}>
              <button type="button" class="button" dir="auto" onClick={() => app.composer.fill(text)}>{text}</button>
            </li>
          ))}
        </ul>
      )}
      <Offers key={agent.name} agent={agent.thread_agent ?? agent.name} />
    </section>
  );
}

/** What the agent may use and touch: read when one wants to know, so that nothing comes late and moves what one reads. */
function Offers({ agent }: { agent: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="offers-place" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{t("message.offers")}</summary>
      {isOpen && <WelcomeOffers agent={agent} />}
    </details>
  );
}
