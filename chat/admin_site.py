"""The sections of the admin's index, as people think of them, and an `AdminSite` that shows them.

Our tables belong to four Django apps; people look for conversations, turns or tokens. A project with an admin site of
its own mixes `Sectioned` in. Without it our tables are listed below their apps, as Django does. It stands outside of
the package `chat.admin`, which registers our tables with the site: the site must be there first.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from chat.operations.missing_walls import missing_walls
from tools_app.sandbox.walls import Wall

__all__ = ["Sectioned"]

Text = str | Promise

if TYPE_CHECKING:
    _Site = admin.AdminSite
else:
    _Site = object


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section of the index. `tables`: what each table is for, by `app_label.model`, in the order of the list."""

    slug: str
    name: Text
    tables: Mapping[str, Text]


SECTIONS: Final = (
    Section(
        slug="conversations",
        name=_("Conversations"),
        tables={
            "think_chat.agentinstance": _(
                "Read what was said, correct it, add to it, stop an answer or ask for another."
            ),
            "think_sessions.session": _("The histories inside conversations. Most conversations have one."),
            "think_sessions.message": _("Search everything that was said, by its words."),
            "think_chat.agentmessage": _("What agents say to each other, and what waits for them; to send a message."),
            "think_chat.project": _("Groups of conversations that people made, with instructions and files."),
            "think_chat.messagefeedback": _("What people think of answers, and why."),
            "think_chat.membership": _("People whom owners let into a conversation, and their roles."),
            "think_chat.invitation": _("Links by which a person can become a member; the secret is not stored."),
            "think_chat.sharelink": _("Links by which anybody reads a conversation up to a message, and their end."),
            "think_chat.attachment": _("Files that people sent, and what they take up."),
            "think_chat.archiveimport": _("Archives of other products that people brought, and what came of them."),
        },
    ),
    Section(
        slug="turns",
        name=_("Turns"),
        tables={
            "think_chat.turn": _("Each request and its answer: status, model, tokens, cost, errors."),
            "think_chat.revert": _("What people took back and brought back: messages, files, and what stayed."),
            "think_chat.agentrun": _("Agents at work for others: what started them, how it ended, what it cost."),
            "think_chat.streamsegment": _("What was streamed, piece by piece, as pages replay it."),
        },
    ),
    Section(
        slug="tools",
        name=_("Tools"),
        tables={
            "think_tools.toolcallrecord": _("Calls of tools, and the decisions that wait for a person."),
            "think_tools.actionrecord": _("What actions did: each effect once, with its result, and what is stuck."),
            "think_tools.guard": _("Conversations that hold text of strangers, and what people decided about it."),
            "think_tools.permissionrule": _("Rules about calls: which run, which ask, which are refused."),
            "think_tools.execution": _("Code that models wrote: what it called, what it gave, what it printed."),
            "think_tools.extension": _("Extensions: what they are made of, what they may do, who has them."),
            "think_tools.extensioncall": _("Calls of extensions to their host, made and refused."),
            "think_tools.bannedsource": _("Sources of extensions that run nowhere."),
            "think_tools.mcpserver": _("Servers whose tools agents use: of the site, of people, of conversations."),
            "think_tools.storedworkspace": _("Workspaces of conversations, and what they take up."),
            "think_tools.workspaceentry": _("Files of conversations, to be looked at."),
        },
    ),
    Section(
        slug="durable-work",
        name=_("Durable work"),
        tables={
            "think_fibers.fiber": _("What workers run, survive and repeat, with the journal of each run."),
            "think_fibers.schedule": _("Work at times to come: when it runs next, and how the last runs went."),
            "think_fibers.servedfunction": _(
                "Which tools executors have, when they were last there, what they last did."
            ),
            "think_fibers.effectstate": _("Rules that run code when rows enter a queryset: what each knows and found."),
            "think_fibers.runnercheckpoint": _("How far runners of other systems are in what they read."),
        },
    ),
    Section(
        slug="durable-streams",
        name=_("Durable streams"),
        tables={
            "think_chat.durablestream": _("Logs that people's programs write and follow, and what they take up."),
            "think_chat.streamsubscription": _("Workers that are woken when streams have something new."),
            "think_chat.feedhead": _("Feeds of what changed in conversations: whose, how far, how much is kept."),
        },
    ),
    Section(
        slug="memory",
        name=_("Memory"),
        tables={
            "think_sessions.contextblock": _("Texts that models read before each conversation."),
            "think_sessions.contextentry": _("Documents that models load or search."),
            "think_sessions.compaction": _("Summaries that models read in place of older messages."),
            "think_sessions.contextchange": _("Who changed what models read, and what it was before."),
            "think_chat.personpreferences": _("What people chose for themselves, and what they have agents read."),
        },
    ),
    Section(
        slug="access",
        name=_("Access"),
        tables={
            "auth.user": _("People, and what they may do."),
            "auth.group": _("Permissions that several people share."),
            "think_chat.apitoken": _("Tokens that programs sign in with. Revoke what is not needed."),
            "think_chat.oauthgrant": _("Programs that people authorised to use agents over MCP."),
            "axes.accessattempt": _("Failed attempts to sign in that still count."),
            "axes.accesslog": _("Who signed in and out, and when."),
            "axes.accessfailurelog": _("All failed attempts to sign in."),
        },
    ),
)


WALLS: Final[Mapping[Wall, Text]] = {
    Wall.USER: _("the wall of another user"),
    Wall.NETWORK: _("a network namespace"),
    Wall.RIGHTS: _("a bar to new rights"),
}


class Sectioned(_Site):
    """Mix into an `AdminSite`: figures and plots first, our sections below, then the other apps as they were."""

    index_template = "admin/think_chat/index.html"

    @override
    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """Add what workers lack, for people who may see code of models."""
        lacking = _cautions() if request.user.has_perm("think_tools.view_execution") else []
        return super().index(request, {**(extra_context or {}), "cautions": lacking})

    @override
    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Group the tables that this person may see. With `app_label`: only that app's, still in sections."""
        index_url = reverse("admin:index", current_app=self.name)
        return in_sections(super().get_app_list(request, app_label), index_url)


class ThinkAdminSite(Sectioned, admin.AdminSite):
    """The admin of this project."""

    site_header = _("Think administration")
    site_title = _("Think administration")
    index_title = _("What do you want to look after?")


def _cautions() -> list[str]:
    """One sentence for each worker whose code of models lacks walls."""
    found = []
    for each in missing_walls():
        if not each.runs:
            text = _("Worker {worker}: code of models does not run, as a wall is missing. `think_doctor` says which.")
            found.append(text.format(worker=each.worker))
            continue
        text = _("Worker {worker}: code of models runs without {walls}.")
        found.append(text.format(worker=each.worker, walls=", ".join(str(WALLS[wall]) for wall in each.lacks)))
    return found


def in_sections(apps: Iterable[Mapping[str, Any]], index_url: str) -> list[dict[str, Any]]:
    """Rearrange Django's list of apps. A section without a table that the person may see is left out."""
    rest = [dict(app) for app in apps]
    found = {f"{app['app_label']}.{model['object_name'].lower()}": model for app in rest for model in app["models"]}
    taken = {key for section in SECTIONS for key in section.tables if key in found}
    for app in rest:
        label = app["app_label"]
        app["models"] = [each for each in app["models"] if f"{label}.{each['object_name'].lower()}" not in taken]
    return [*_shown(found, index_url), *(app for app in rest if app["models"])]


def _shown(found: Mapping[str, Mapping[str, Any]], index_url: str) -> list[dict[str, Any]]:
    shown = []
    for section in SECTIONS:
        models = [
            {**found[key], "description": description} for key, description in section.tables.items() if key in found
        ]
        if models:
            shown.append(
                {
                    "name": section.name,
                    "app_label": f"think-{section.slug}",
                    "app_url": f"{index_url}#think-{section.slug}",
                    "has_module_perms": True,
                    "models": models,
                }
            )
    return shown
