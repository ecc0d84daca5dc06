// Below an answer: good or bad, and why. A second press takes it back.

import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { feedbackOf } from "../store/feedback.ts";
import type { Message } from "../store/types.ts";
import { IconButton } from "./icon.tsx";
import type { Parts } from "./parts_context.ts";

const LONGEST = 1_000;

export function FeedbackButtons({ context: { app, conversation }, message }: { context: Parts; message: Message }) {
  const feedback = follow(feedbackOf(conversation, app.api));
  const word = feedback.of(message.id);
  const press = async (isGood: boolean) => {
    try {
      if (word?.is_good === isGood) return await feedback.set(message.id, null);
      await feedback.set(message.id, { is_good: isGood, reason: "" });
      const load = async () => (await import("../dialogs/all.ts")).AskName;
      const reason = await app.dialogs.ask(load, {
        title: t("feedback.title"),
        label: t(isGood ? "feedback.reason" : "feedback.reason-bad"),
        confirm: t("feedback.send"),
        value: "",
        longest: LONGEST,
      });
      if (!reason) return;
      await feedback.set(message.id, { is_good: isGood, reason });
      app.notices.show(t("feedback.thanks"));
    } catch (error) {
      app.notices.fail(error);
    }
  };
  const button = (isGood: boolean) => (
    <IconButton
      class="is-named"
      icon={isGood ? "good" : "bad"}
      label={t(isGood ? "feedback.good" : "feedback.bad")}
      title={undefined}
      aria-pressed={word?.is_good === isGood}
      onClick={() => void press(isGood)}
    />
  );
  return (
    <>
      {button(true)}
      {button(false)}
    </>
  );
}
