"""Tables of the chat app. Columns, constraints and derived properties only: writes happen in services."""

from chat.models.account import DataExport, ProviderKey, SignedInBrowser
from chat.models.conversations import (
    AgentInstance,
    ApiToken,
    Attachment,
    Delivery,
    MessageCount,
    SignInLink,
    StreamSegment,
    Turn,
    TurnOptions,
    TurnSeen,
    TurnTrigger,
    new_attachment_id,
    new_instance_id,
    new_turn_id,
)
from chat.models.durable_streams import (
    DurableStream,
    StreamEntry,
    StreamProducer,
    StreamSubscription,
    SubscriptionLink,
)
from chat.models.feed import FeedChange, FeedHead
from chat.models.feedback import MessageFeedback
from chat.models.imports import ArchiveImport, ImportedConversation
from chat.models.inbox import AgentMessage, AgentMessageKind
from chat.models.members import Invitation, Membership, Role, new_invitation_id, new_member_id
from chat.models.oauth import OAuthClient, OAuthGrant, OAuthToken
from chat.models.people import PersonPreferences
from chat.models.projects import Project, ProjectColour, new_project_id
from chat.models.prompts import SavedPrompt, new_prompt_id
from chat.models.push import NoticeChoices, NoticeKind, PushDevice, PushKey, new_push_device_id
from chat.models.reverts import KeptChange, Revert, new_revert_id
from chat.models.runs import AgentRun
from chat.models.shares import ShareLink, new_share_id
from chat.models.usage import SideCall, SideCallKind

__all__ = [
    "AgentInstance",
    "AgentMessage",
    "AgentMessageKind",
    "AgentRun",
    "ApiToken",
    "ArchiveImport",
    "Attachment",
    "DataExport",
    "Delivery",
    "DurableStream",
    "FeedChange",
    "FeedHead",
    "ImportedConversation",
    "Invitation",
    "KeptChange",
    "Membership",
    "MessageCount",
    "MessageFeedback",
    "NoticeChoices",
    "NoticeKind",
    "OAuthClient",
    "OAuthGrant",
    "OAuthToken",
    "PersonPreferences",
    "Project",
    "ProjectColour",
    "ProviderKey",
    "PushDevice",
    "PushKey",
    "Revert",
    "Role",
    "SavedPrompt",
    "ShareLink",
    "SideCall",
    "SideCallKind",
    "SignInLink",
    "SignedInBrowser",
    "StreamEntry",
    "StreamProducer",
    "StreamSegment",
    "StreamSubscription",
    "SubscriptionLink",
    "Turn",
    "TurnOptions",
    "TurnSeen",
    "TurnTrigger",
    "new_attachment_id",
    "new_instance_id",
    "new_invitation_id",
    "new_member_id",
    "new_project_id",
    "new_prompt_id",
    "new_push_device_id",
    "new_revert_id",
    "new_share_id",
    "new_turn_id",
]
