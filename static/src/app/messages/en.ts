// The English catalogue: one file for each area of the page, so that a text is found by where it is seen. Keys begin with
// the name of their file. What only views say that are loaded later stands in `later.ts`.

import agents from "./en/agents.json" with { type: "json" };
import common from "./en/common.json" with { type: "json" };
import composer from "./en/composer.json" with { type: "json" };
import conversation from "./en/conversation.json" with { type: "json" };
import list from "./en/list.json" with { type: "json" };
import message from "./en/message.json" with { type: "json" };
import models from "./en/models.json" with { type: "json" };
import status from "./en/status.json" with { type: "json" };
import temporary from "./en/temporary.json" with { type: "json" };
import tools from "./en/tools.json" with { type: "json" };

export const en = {
  ...agents,
  ...common,
  ...composer,
  ...conversation,
  ...list,
  ...message,
  ...models,
  ...status,
  ...temporary,
  ...tools,
} as const;
