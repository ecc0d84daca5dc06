"""Errors about a person's account: who may do what with it, and what is not there.

ChatError
└─ BrowserNeeded · SignInNeeded · SignInNotFound · TokenNotFound · KeyNotFound · ExportNotFound · LastAdministrator
               PreferenceInvalid · ProjectNotFound · PromptNotFound · PushDeviceNotFound
"""

from chat.errors import ChatError
from thinkproject.kernel.errors import Conflict, Denied, Invalid, NotFound


class BrowserNeeded(ChatError, Denied):
    """Only a person who is signed in with a browser may do this. A token may not."""


class SignInNeeded(ChatError, Denied):
    """Sign in again before you do this: your password is wrong, or you signed in too long ago."""


class SignInNotFound(ChatError, NotFound):
    """This browser is no longer signed in."""


class TokenNotFound(ChatError, NotFound):
    """There is no such token, or it was revoked."""


class KeyNotFound(ChatError, NotFound):
    """You have no key for this provider, or this site takes none for it."""


class ExportNotFound(ChatError, NotFound):
    """There is no such export, or it was removed."""


class LastAdministrator(ChatError, Conflict):
    """You are the only administrator of this site. Make another person one first."""


class PreferenceInvalid(ChatError, Invalid):
    """This preference is not possible. Data: `field`."""


class PromptNotFound(ChatError, NotFound):
    """You have no such prompt."""


class ProjectNotFound(ChatError, NotFound):
    """You have no such project."""

    code = "project_not_found"


class PushDeviceNotFound(ChatError, NotFound):
    """You have no such device."""
