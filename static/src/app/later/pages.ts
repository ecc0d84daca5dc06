// Pages beside the conversation: approvals, settings, work. One piece: one who opens one of them is at leisure.

import "../messages/later.ts"; // before any of the views

export { ApprovalsPage } from "../ui/approvals_page.tsx";
export { SettingsPage } from "../settings/settings_page.tsx";
export { WorkView } from "../ui/work_page.tsx";
