// Beginning a conversation: one button for the agent used last, and an arrow beside it to choose another.

import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { AgentName } from "./agent_mark.tsx";
import { useApp } from "./context.ts";
import { FollowLink } from "./follow_link.tsx";
import { Icon } from "./icon.tsx";
import { lazy } from "./lazy.tsx";
import { Popover } from "./popover.tsx";

const AgentList = lazy(async () => (await import("../later/views.ts")).AgentList);

/** "New" and, where there are several agents, the arrow. */
export function NewButton() {
  const app = useApp();
  follow(app.place);
  const { agents } = app;
  const address = app.router.address({ page: "new", agent: "" });
  const link = (
    <FollowLink href={address} class="button" data-link="new" go={() => app.place.newConversation()}>
      <Icon name="plus" />
      {t("list.new")}
    </FollowLink>
  );
  if (agents.length < 2) return link;
  const label = t("agents.choose");
  return (
    <div class="split">
      {link}
      <Popover
        label={label}
        role="dialog"
        class="picker"
        prepare={AgentList.load}
        button={{
          id: "choose-agent",
          class: "button",
          "aria-label": label,
          title: label,
          children: <Icon name="down-small" />,
        }}
      >
        {(close) => (
          <AgentList
            agents={agents}
            current={app.lastAgent}
            choose={(name) => {
              close();
              app.place.newConversation(name);
            }}
          />
        )}
      </Popover>
    </div>
  );
}

/** Who answers in the open conversation. While nothing is written to it, another can be chosen. */
export function HeadAgent() {
  const app = useApp();
  follow(app.place);
  const { instance } = follow(app.conversation);
  const agent = app.agentOf(instance);
  if (!instance.isNew || app.agents.length < 2) return <AgentName agent={agent} id="agent-name" />;
  return (
    <Popover
      label={t("agents.choose")}
      role="dialog"
      class="picker"
      prepare={AgentList.load}
      button={{
        class: "button agent-button",
        title: t("agents.choose"),
        children: (
          <>
            <AgentName agent={agent} id="agent-name" />
            <Icon name="down-small" />
          </>
        ),
      }}
    >
      {(close) => (
        <AgentList
          agents={app.agents}
          current={agent.name}
          choose={(name) => {
            close();
            app.place.newConversation(name, instance.projectId ?? "");
          }}
        />
      )}
    </Popover>
  );
}
