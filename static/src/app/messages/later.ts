// The English texts of views that are loaded when they are needed. They come with `ui/later.ts`; nothing that is loaded before
// may say them (a test reads the imports).

import { addMessages } from "../lib/i18n.ts";
import calls from "./en/calls.json" with { type: "json" };
import files from "./en/files.json" with { type: "json" };
import memory from "./en/memory.json" with { type: "json" };
import panel from "./en/panel.json" with { type: "json" };

export const later = { ...calls, ...files, ...memory, ...panel } as const;

addMessages(later);
