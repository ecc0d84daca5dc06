// The view of each kind of call. A new kind is a line here and one in `store/tool_kinds.ts`; a call of none is shown by its
// arguments and its result.

import type { ComponentType } from "preact";
import type { ToolKind } from "../../store/tool_kinds.ts";
import { DeleteCall, EditCall, GrepCall, ListCall, ReadCall, WriteCall } from "./file_calls.tsx";
import type { CallProps } from "./pieces.tsx";
import { CodeCall, FetchCall, TerminalCall } from "./run_calls.tsx";

export const CALL_VIEWS: Readonly<Record<ToolKind, ComponentType<CallProps>>> = {
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
