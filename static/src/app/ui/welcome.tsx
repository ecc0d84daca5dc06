// An empty conversation: who would answer, and what one may begin with.

import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import type { App } from "../store/app.ts";
import type { Conversation } from "../store/conversation.ts";
import { AgentMark } from "./agent_mark.tsx";
import { lazy, lazyWhenQuiet } from "./lazy.tsx";

const WelcomeOffers = lazyWhenQuiet(async () => (await import("./later.ts")).WelcomeOffers);
const ThreadsWelcome = lazy(async () => (await import("./later.ts")).ThreadsWelcome);

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
      <div class="offers-place">
        <WelcomeOffers agent={agent.thread_agent ?? agent.name} />
      </div>
    </section>
  );
}
