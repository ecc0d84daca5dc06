// Sections about the person. They are loaded together: each alone would cut the page's scripts into more files.

export { InstructionsSection } from "./instructions.tsx";
export { MemorySection } from "./memory.tsx";
export { NotificationsSection } from "./notifications.tsx";
export { PromptsSection } from "./prompts.tsx";
export { RulesSection } from "./rules.tsx";
export { YouSection } from "./you.tsx";
