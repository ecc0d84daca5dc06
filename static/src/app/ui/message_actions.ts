// What one can do with a message: the same list as a row of symbols and as a menu.

import { pending } from "../lib/busy.ts";
import { t } from "../lib/i18n.ts";
import { isOwn } from "../store/instances.ts";
import { textOf } from "../store/text_of.ts";
import type { Message } from "../store/types.ts";
import { shareLinks } from "./conversation_menu.tsx";
import type { Parts } from "./parts_context.ts";

const verbs = () => pending(import("../later/views.ts"));

export interface MessageAction {
  icon: string;
  label: string;
  /** Resolves to true where `done` is to be shown. */
  run: () => unknown;
  /** Said for a moment when it is done. */
  done?: string;
  /** In the menu of an answer: what one does with it now and then. */
  isRare?: boolean;
}

/** `whole`: the messages that are one answer, this one last. All but copying acts on this one. */
export function actionsOf(context: Parts, message: Message, whole: readonly Message[]): MessageAction[] {
  const { app, conversation } = context;
  const { instance, place } = conversation;
  const text = whole.map(textOf).filter(Boolean).join("\n\n");
  const isAnswer = message.role === "assistant";
  const mayCompare = isAnswer && instance.id !== "" && !place?.isForeign;
  const compared = mayCompare && whole.find(({ siblings }) => siblings.length > 1);
  const actions: (MessageAction | false)[] = [
    text !== "" && {
      icon: "copy",
      label: t("message.copy"),
      run: () => app.copy(text),
      done: t("common.copied"),
    },
    !instance.isReadOnly && isAnswer && {
      icon: "again",
      label: t("message.again"),
      run: () => void app.sending.regenerate(message),
    },
    !instance.isReadOnly && message.role === "user" && {
      icon: "edit",
      label: t("message.edit"),
      run: () => app.sending.edit(message),
    },
    isOwn(instance) && !instance.isReadOnly && isAnswer && textOf(message) !== "" && {
      icon: "edit",
      label: t("message.edit-this-answer"),
      isRare: true,
      run: () => void app.branching.editAnswer(message),
    },
    isOwn(instance) && !instance.isReadOnly && instance.id !== "" && {
      icon: "fork",
      label: t("message.fork"),
      isRare: isAnswer,
      run: () => void app.branching.fork(message),
    },
    isOwn(instance) && instance.id !== "" && !instance.parentId && !place && {
      icon: "globe",
      label: t("message.share-to-here"),
      isRare: isAnswer,
      run: () => void shareLinks(app, instance, message),
    },
    instance.id !== "" && {
      icon: "link",
      label: t("message.copy-link"),
      isRare: isAnswer,
      run: () => app.copy(linkTo(context, message.id)),
      done: t("message.link-copied"),
    },
    message.role === "user" && text !== "" && {
      icon: "book",
      label: t("message.save-prompt"),
      isRare: true,
      run: () => void verbs().then(({ savePrompt }) => savePrompt(app, text)),
    },
    isOwn(instance) && !instance.isReadOnly && isAnswer && app.models.of(instance.agent).length > 1 && {
      icon: "sliders",
      label: t("message.other-model"),
      isRare: true,
      run: () => void verbs().then(({ askAnotherModel }) => askAnotherModel(app, conversation, message)),
    },
    !!compared && {
      icon: "panel",
      label: t("message.compare"),
      isRare: true,
      run: () => void verbs().then(({ compareAnswers }) => compareAnswers(app, conversation, compared)),
    },
    isAnswer && text !== "" && "speechSynthesis" in globalThis && {
      icon: "chat",
      label: t("message.read-aloud"),
      isRare: true,
      run: () => void verbs().then(({ speak }) => speak(app, text)),
    },
  ];
  return actions.filter((action) => action !== false);
}

function linkTo({ app, conversation: { instance, place } }: Parts, messageId: string): string {
  const sessionId = place?.isForeign ? place.sessionId ?? "" : "";
  const address = app.router.address({ page: "conversation", id: instance.id, place: { messageId, sessionId } });
  return new URL(address, location.href).href;
}
