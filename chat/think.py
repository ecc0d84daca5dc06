"""`Think`: the class that developers subclass, and every name they import.

    from chat.think import Think, tool

    class Assistant(Think):
        def get_model(self):
            return "default"

Class attributes hold values, methods hold decisions. Every method may be sync or async; sync ones run on threads of
their own. Hooks return a value or `None` ("no opinion") and never mutate their argument.
"""

import importlib
from typing import TYPE_CHECKING, Any

from chat.agent.base import Agent, InstanceKey
from chat.agent.callables import StreamResult, client_callable
from chat.agent.connection import ClientConnection
from chat.agent.plugin import Plugin
from chat.agent.think import USE_LOOP, Think
from chat.agent.values.approvals import PendingExecution
from chat.agent.values.background import CompletedFiber, FiberInspection, LostFiber, QueuedCall, RunningFiber
from chat.agent.values.messages import AgentReference
from chat.agent.values.runs import AgentRunInfo, Detached, SubAgentInfo
from chat.agent.values.schedules import Occurrence, ScheduleCriteria, ScheduleView
from chat.agent.values.turns import SavedTurn, StoredSession, Submission
from chat.core.commands import Command
from chat.core.context.addressees import addressee_of, view_of
from chat.core.context.compaction_policy import CompactionPolicy
from chat.core.context.context_policy import ContextPolicy
from chat.core.context.session_setup import SessionSetup
from chat.core.loop.hooks import (
    ActionContext,
    Allow,
    AuthorizationContext,
    Block,
    ChatErrorContext,
    ChatOptions,
    ChatResponse,
    ChunkContext,
    MetadataContext,
    ModelChoice,
    ModelSwitch,
    RecoveryContext,
    RecoveryDecision,
    RecoveryExhausted,
    ResponseStatus,
    StepConfig,
    StepContext,
    StepRecord,
    StopCondition,
    Substitute,
    ToolCallContext,
    ToolChoice,
    ToolDecision,
    ToolOutcome,
    TurnConfig,
    TurnContext,
)
from chat.core.model.chosen_model import ChosenModel
from chat.core.model.language_model import (
    AssistantMessage,
    LanguageModel,
    ModelMessage,
    ModelSettings,
    TextContent,
    ToolCallContent,
    ToolMessage,
    UserMessage,
)
from chat.core.model.output_schema import Output
from chat.core.model.overflow import Formula as OverflowFormula
from chat.errors import TurnTimeout, TurnWaits
from chat.threads.done import done, is_done
from chat.threads.prompts import CODING_PROMPT
from fibers.waits import WaitEnd
from sessions_app.core.compaction.compaction import Bounds as CompactionBounds
from sessions_app.core.compaction.compaction import CompactionResult, create_compact_function
from sessions_app.core.context.context_blocks import Block as ContextBlock
from sessions_app.core.context.context_blocks import StoredSearch, StoredSkills, StoredText
from thinkproject.kernel.retry import RetryPolicy, retry
from tools_app.actions.action import action
from tools_app.actions.compensation import Undo, compensation
from tools_app.core.files.workspace import Workspace
from tools_app.core.guard.rules import InjectionGuard, Relaxed
from tools_app.core.mcp.servers import McpServerSpec, McpServerView
from tools_app.core.origins import Origin
from tools_app.core.output_limits import OutputLimit
from tools_app.core.permissions.rules import Permission
from tools_app.core.tool import ApprovalRule, Tool, ToolContext, client_tool, tool
from tools_app.core.tool_calls import ToolCall
from tools_app.core.tool_output import Media, ToolOutput
from tools_app.core.wrappers import filtered, renamed, with_approval, with_output_limit, with_prefix, with_timeout

if TYPE_CHECKING:
    from chat.core.wire.ndjson import LineReader
    from chat.instance.handle import AgentHandle
    from chat.threads.agent import ThreadAgent, ThreadsAgent
    from chat.threads.chat import ThreadChat
    from chat.threads.facet import AgentFacet
    from chat.threads.loop import AgentLoop, LoopResult
    from chat.threads.verbs import ThreadsHandle
    from tools_app.actions.undoing import undo_effect

__all__ = [
    "CODING_PROMPT",
    "USE_LOOP",
    "ActionContext",
    "Agent",
    "AgentFacet",
    "AgentHandle",
    "AgentLoop",
    "AgentReference",
    "AgentRunInfo",
    "Allow",
    "ApprovalRule",
    "AssistantMessage",
    "AuthorizationContext",
    "Block",
    "ChatErrorContext",
    "ChatOptions",
    "ChatResponse",
    "ChosenModel",
    "ChunkContext",
    "ClientConnection",
    "Command",
    "CompactionBounds",
    "CompactionPolicy",
    "CompactionResult",
    "CompletedFiber",
    "ContextBlock",
    "ContextPolicy",
    "Detached",
    "FiberInspection",
    "InjectionGuard",
    "InstanceKey",
    "LanguageModel",
    "LineReader",
    "LoopResult",
    "LostFiber",
    "McpServerSpec",
    "McpServerView",
    "Media",
    "MetadataContext",
    "ModelChoice",
    "ModelMessage",
    "ModelSettings",
    "ModelSwitch",
    "Occurrence",
    "Origin",
    "Output",
    "OutputLimit",
    "OverflowFormula",
    "PendingExecution",
    "Permission",
    "Plugin",
    "QueuedCall",
    "RecoveryContext",
    "RecoveryDecision",
    "RecoveryExhausted",
    "Relaxed",
    "ResponseStatus",
    "RetryPolicy",
    "RunningFiber",
    "SavedTurn",
    "ScheduleCriteria",
    "ScheduleView",
    "SessionSetup",
    "StepConfig",
    "StepContext",
    "StepRecord",
    "StopCondition",
    "StoredSearch",
    "StoredSession",
    "StoredSkills",
    "StoredText",
    "StreamResult",
    "SubAgentInfo",
    "Submission",
    "Substitute",
    "TextContent",
    "Think",
    "ThreadAgent",
    "ThreadChat",
    "ThreadsAgent",
    "ThreadsHandle",
    "Tool",
    "ToolCall",
    "ToolCallContent",
    "ToolCallContext",
    "ToolChoice",
    "ToolContext",
    "ToolDecision",
    "ToolMessage",
    "ToolOutcome",
    "ToolOutput",
    "TurnConfig",
    "TurnContext",
    "TurnTimeout",
    "TurnWaits",
    "Undo",
    "UserMessage",
    "WaitEnd",
    "Workspace",
    "action",
    "addressee_of",
    "client_callable",
    "client_tool",
    "compensation",
    "create_compact_function",
    "done",
    "filtered",
    "is_done",
    "renamed",
    "retry",
    "tool",
    "undo_effect",
    "view_of",
    "with_approval",
    "with_output_limit",
    "with_prefix",
    "with_timeout",
]


_LATER = {
    "AgentFacet": "chat.threads.facet",
    "AgentHandle": "chat.instance.handle",
    "AgentLoop": "chat.threads.loop",
    "LineReader": "chat.core.wire.ndjson",
    "LoopResult": "chat.threads.loop",
    "ThreadChat": "chat.threads.chat",
    "ThreadAgent": "chat.threads.agent",
    "ThreadsAgent": "chat.threads.agent",
    "ThreadsHandle": "chat.threads.verbs",
    "undo_effect": "tools_app.actions.undoing",
}


def __getattr__(name: str) -> Any:
    """Load what needs Django's models when it is asked for: a module of agents can do without them."""
    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
