// "1 message", "2 messages". Of the old page.

import { count } from "../app/store/context_facts.ts";

export const several = (value, word) => `${count(value)} ${word}${value === 1 ? "" : "s"}`;
