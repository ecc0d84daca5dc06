// Panels about what agents do and use. They are loaded together: each alone would cut the page's first script into more files.

export { SchedulesPanel } from "./schedules.tsx";
export { WorkspacesPanel } from "./workspaces.tsx";
export { ToolsPanel } from "./tools.tsx";
