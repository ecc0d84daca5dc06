// The dialogs by name: what each is asked with, and what it answers. Their views are in `dialogs/`, named in `later/dialogs.ts`.

import type { Api } from "../net/api.ts";
import type { Project } from "../net/projects_api.ts";
import type { SavedPrompt } from "../net/prompts_api.ts";
import type { UndoEffect, UndoPreview } from "../net/undo_api.ts";
import type { App } from "./app.ts";
import type { ModelFacts } from "./models.ts";
import type { People } from "./people.ts";
import type { Agent, Instance, Message } from "./types.ts";
import type { UndoChoice } from "./undo_verbs.ts";

/** A picture that is shown large. */
export interface ShownPicture {
  /** What is shown, and what is saved: the original. */
  src: string;
  href: string;
  name: string;
}

interface Kind<Props, Answer> {
  props: Props;
  answer: Answer;
}

/** The kinds that there are. A new one is a line here, its view in `dialogs/`, and its line in `later/dialogs.ts`. */
export interface DialogKinds {
  /** The answer: what was written. `longest`: most characters. */
  "ask-name": Kind<{ title: string; label: string; confirm: string; value: string; longest?: number }, string>;
  /** The answer: the id of a message. */
  "branch-map": Kind<{ api: Api; instanceId: string }, string>;
  /** The answer: the name of a model. */
  "choose-model": Kind<{ models: readonly ModelFacts[]; current: string }, string>;
  /** `current`: its id, "" for none. `thread`: what the thread is called. */
  "choose-workspace": Kind<
    { workspaces: readonly { id: string; name: string }[]; current: string; thread: string },
    { id: string }
  >;
  /** `ids`: the answers, the oldest first, each by its first message; `current`: the one that is shown. Answers with one of them. */
  "compare-answers": Kind<{ app: App; instance: Instance; ids: readonly string[]; current: string }, string>;
  /** `option`: something that may be ticked besides. */
  confirm: Kind<
    { title: string; text: string; confirm: string; isDanger?: boolean; option?: string },
    { isTicked: boolean }
  >;
  "edit-answer": Kind<{ text: string; isLast: boolean }, { text: string; continues: boolean }>;
  /** `project` null: a new one. In the answer: it was removed. */
  "edit-project": Kind<{ project: Project | null }, { project: Project | null }>;
  /** `prompt` without an id: a new one. */
  "edit-prompt": Kind<{ api: Api; prompt: Pick<SavedPrompt, "name" | "text"> & { id?: string } }, SavedPrompt>;
  /** `sessionId`: of the conversation, "" for all. `ids`: of several conversations. */
  "export-conversations": Kind<{ api: Api; sessionId: string; title: string; ids?: readonly string[] }, true>;
  "fill-prompt": Kind<{ name: string; places: readonly string[] }, Record<string, string>>;
  /** `onAdded`: something was added to the list. */
  "import-archive": Kind<{ api: Api; agents: readonly Agent[]; current: string; onAdded: () => void }, { id: string }>;
  /** `count`: how many conversations; `current`: where all of them are. The answer's `id` null: none; `isNew`: one to be made. */
  "move-to-project": Kind<
    { projects: readonly Project[]; count: number; current: string | null | undefined },
    { id: string | null; isNew: boolean }
  >;
  /** `current`: the message that is read now. The answer: the id of a message. */
  outline: Kind<{ api: Api; instanceId: string; current: string }, string>;
  picture: Kind<{ pictures: readonly ShownPicture[]; first: number }, never>;
  share: Kind<{ api: Api; people: People; instance: Instance }, true>;
  /** `message`: where a new link ends. */
  "share-links": Kind<{ api: Api; instance: Instance; message?: Message }, true>;
  shortcuts: Kind<Record<never, never>, never>;
  /** `undoEffect` runs the compensation of one effect; null where there are none to undo. */
  undo: Kind<
    { preview: UndoPreview; isRedo: boolean; undoEffect: ((effect: UndoEffect) => Promise<void>) | null },
    UndoChoice
  >;
}

export type DialogName = keyof DialogKinds;

/** What the view of a dialog gets: its properties, and `close` with an answer, or with null where there is none. */
export type DialogProps<Name extends DialogName> = DialogKinds[Name]["props"] & {
  close: (answer: DialogKinds[Name]["answer"] | null) => void;
};
