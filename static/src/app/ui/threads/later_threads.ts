// What an agent that keeps threads has besides.

import "../../messages/later.ts"; // before any of the views

export { ThreadsHead } from "./threads_head.tsx";
export { ThreadsWelcome } from "./threads_welcome.tsx";
