// Calls that code makes and that wait for a person: cards at the call that runs the code, as for any other call. Loaded when needed.

import { useEffect } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { isOwn, mayDecide } from "../store/instances.ts";
import type { ToolPart } from "../store/types.ts";
import { ApprovalCard, askedOf, sourcesIn } from "./approval_card.tsx";
import type { Parts } from "./parts_context.ts";

export function InnerQuestions({ context, part }: { context: Parts; part: ToolPart }) {
  const { app, conversation } = context;
  const openCalls = follow(context.openCalls);
  const waits = JSON.stringify(follow(conversation).running?.waits);
  useEffect(() => openCalls.again(), [waits]); // the code went on, and asks about another one
  return (
    <>
      {openCalls.error && (
        <p class="is-error" role="alert">
          {openCalls.error}{" "}
          <button type="button" class="quiet" onClick={() => openCalls.again()}>{t("common.try-again")}</button>
        </p>
      )}
      {openCalls.within(part.toolCallId).map((call) => (
        <ApprovalCard
          key={call.call_id}
          tool={call.tool_name}
          callId={call.call_id}
          title={call.tool_title}
          sentence={call.sentence}
          risk={call.risk}
          because={sourcesIn(call.because)}
          offers={isOwn(conversation.instance) ? call.offers : []}
          rule={call.rule}
          choices={call.choices}
          input={call.input}
          schema={call.input_schema}
          mayEdit={call.may_edit}
          expiresAt={call.expires_at}
          isReadOnly={!mayDecide(conversation.instance)}
          askedOf={askedOf(follow(app.people), conversation.instance)}
          decide={async (decision) => {
            const asked = { toolCallId: call.call_id, input: call.input };
            const isStored = await app.deciding.decideIn(conversation, asked, decision);
            openCalls.again();
            if (isStored) app.composer.focus(); // the button that was pressed goes away
            return isStored;
          }}
        />
      ))}
    </>
  );
}
