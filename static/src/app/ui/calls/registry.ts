// The view of each kind of call. A new kind is a line here and one in `store/tool_kinds.ts`; a call of none is shown by its
// arguments and its result.

import type { ComponentType } from "preact";
import { isBrowserCall } from "../../store/browser_calls.ts";
import { kindOf, type ToolKind } from "../../store/tool_kinds.ts";
import type { ToolPart } from "../../store/types.ts";
import { BrowserCall } from "./browser_call.tsx";
import { DeleteCall, EditCall, GrepCall, ListCall, ReadCall, WriteCall } from "./file_calls.tsx";
import type { CallProps } from "./pieces.tsx";
import { CodeCall, FetchCall, TerminalCall } from "./run_calls.tsx";

const CALL_VIEWS: Readonly<Record<ToolKind, ComponentType<CallProps>>> = {
  read: ReadCall,
  write: WriteCall,
  edit: EditCall,
  delete: DeleteCall,
  list: ListCall,
  find: ListCall,
  grep: GrepCall,
  bash: TerminalCall,
  execute: CodeCall,
  fetch: FetchCall,
};

/** The view of a call; null for one of no kind. */
export function viewOf(part: ToolPart): ComponentType<CallProps> | null {
  if (isBrowserCall(part)) return BrowserCall;
  const kind = kindOf(part);
  return kind ? CALL_VIEWS[kind] : null;
}
