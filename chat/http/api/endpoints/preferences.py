"""API operations on the caller's preferences."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.translation import get_language_info
from ninja import Router

from chat.http.api.authentication import caller_of
from chat.http.api.schemas.preferences import LanguageOut, PreferencesIn, PreferencesOut
from chat.http.preference_cookies import write_cookies
from chat.models import PersonPreferences
from chat.people.preferences import MAX_INSTRUCTION_TOKENS, change_preferences, preferences_of
from sessions_app.core.compaction.tokens import estimate_text
from thinkproject.kernel.filling import filled

router = Router(tags=["you"])


@router.get("/preferences", response=PreferencesOut, operation_id="get_preferences")
def preferences_detail(request: HttpRequest) -> PreferencesOut:
    """Your preferences: how the page looks and speaks, and what agents read about you."""
    return _shown(preferences_of(caller_of(request).user.pk))


@router.patch("/preferences", response=PreferencesOut, operation_id="change_preferences")
def preferences_change(request: HttpRequest, response: HttpResponse, data: PreferencesIn) -> PreferencesOut:
    """Change some of your preferences. A browser gets cookies for those that its next page needs."""
    changes = data.dict(exclude_unset=True)
    preferences = change_preferences(caller_of(request).user.pk, changes)
    write_cookies(response, preferences, set(changes))
    return _shown(preferences)


def _shown(row: PersonPreferences) -> PreferencesOut:
    return filled(
        PreferencesOut,
        row,
        about_me_tokens=estimate_text(row.about_me),
        how_to_answer_tokens=estimate_text(row.how_to_answer),
        max_tokens=MAX_INSTRUCTION_TOKENS,
        languages=[LanguageOut(code=code, name=_own_name(code, name)) for code, name in settings.LANGUAGES],
    )


def _own_name(code: str, name: str) -> str:
    """A language as its speakers call it; as the settings do where Django does not know it."""
    try:
        info = get_language_info(code)
    except KeyError:
        return name
    return str(info["name_local"]) if info["code"] == code else name  # a variety has no name there
