"""API operations on the caller's own keys for providers. A key is written, and never read out again."""

from django.http import HttpRequest
from ninja import Router, Status

from chat.access import provider_keys
from chat.account_errors import KeyNotFound
from chat.http.api.authentication import AsyncSessionAuth, AsyncTokenAuth, browser_caller_of, caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.account import ProviderKeyIn, ProviderKeyOut, ProviderOut
from chat.llm.conf import llm_settings
from chat.llm.own_keys import own_key_providers, try_key
from chat.llm.registry import endpoint_with_key
from chat.models import ProviderKey
from thinkproject.kernel.aio import db

router = Router(tags=["account"])


@router.get("/provider-keys", response=list[ProviderOut], operation_id="list_provider_keys")
def key_list(request: HttpRequest) -> list[ProviderOut]:
    """The providers for which this site lets you use a key of your own, and your keys' last characters."""
    keys = provider_keys.keys_of(caller_of(request).user)
    return [
        ProviderOut(
            provider=provider,
            models=[name.partition("/")[2] for name in llm_settings.models if name.startswith(f"{provider}/")],
            key=_key(keys[provider]) if provider in keys else None,
        )
        for provider in own_key_providers()
    ]


@router.put("/provider-keys/{provider}", response=ProviderKeyOut, operation_id="store_provider_key")
def key_store(request: HttpRequest, provider: str, data: ProviderKeyIn) -> ProviderKeyOut:
    """Store a key, in the place of the former one. Only with a browser. It is used for what you ask from now on."""
    return _key(provider_keys.store_key(browser_caller_of(request).user, provider, data.key))


@router.delete("/provider-keys/{provider}", response={204: None}, operation_id="remove_provider_key")
def key_remove(request: HttpRequest, provider: str) -> object:
    """Remove a key. What you ask from now on is asked with the site's own, where it has one."""
    provider_keys.remove_key(caller_of(request).user, provider)
    return Status(204, None)


@router.post(
    "/provider-keys/{provider}/try",
    response=ProviderKeyOut,
    operation_id="try_provider_key",
    auth=[AsyncTokenAuth(), AsyncSessionAuth()],
    openapi_extra=declares(429),
)
async def key_try(request: HttpRequest, provider: str) -> ProviderKeyOut:
    """Ask the provider for its models with your key, which costs nothing: `works`, `refused` or `unreachable`."""
    user = caller_of(request).user
    key = await db(provider_keys.begin_trial, user, provider)
    endpoint = endpoint_with_key(provider, key)
    if endpoint is None:
        raise KeyNotFound
    outcome = await try_key(endpoint)
    return _key(await db(provider_keys.end_trial, user, provider, outcome))


def _key(row: ProviderKey) -> ProviderKeyOut:
    return ProviderKeyOut(ending=row.ending, created_at=row.created_at, tried_at=row.tried_at, outcome=row.outcome)
