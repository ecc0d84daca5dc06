// The panel beside a conversation, with the view of background work.

import "../messages/later.ts"; // before any of the views

export { Panel } from "../panels/panel.tsx";
export { BackgroundPanel } from "../panels/background.tsx";
