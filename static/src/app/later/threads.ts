// What an agent that keeps threads has besides.

import "../messages/later.ts"; // before any of the views

export { ThreadsHead } from "../ui/threads/threads_head.tsx";
export { ThreadsWelcome } from "../ui/threads/threads_welcome.tsx";
