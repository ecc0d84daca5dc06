"""URLs that every project with this app includes at its root: signing in, health, programs, get-messages, `useChat`.

Signing in is at this site, and at MCP servers.

The pages are in `chat.urls`.
"""

from django.urls import URLPattern, URLResolver, path, re_path
from django.views.i18n import set_language

from chat.http.auth_pages import SignIn, SignInByLink, SignOut
from chat.http.durable_streams.conversation_views import conversation_stream
from chat.http.durable_streams.subscription_views import public_keys, subscription, subscription_work
from chat.http.durable_streams.turn_views import turn_stream
from chat.http.durable_streams.views import durable_stream
from chat.http.health import live, ready
from chat.http.mcp_sign_in import callback, start
from chat.http.oauth import consent
from chat.http.oauth import views as oauth
from chat.http.usechat.messages import get_messages
from chat.http.usechat.views import chat, chat_stream

urlpatterns: list[URLPattern | URLResolver] = [
    path("sign-in/", SignIn.as_view(), name="login"),
    path("sign-in/<str:token>", SignInByLink.as_view(), name="sign-in-link"),
    path("sign-out/", SignOut.as_view(), name="logout"),
    path("language/", set_language, name="language"),
    path("oauth/authorize", oauth.authorize, name="oauth-authorize"),
    path("oauth/consent", consent.consent, name="oauth-consent"),
    path("oauth/token", oauth.token, name="oauth-token"),
    path("oauth/register", oauth.register, name="oauth-register"),
    path("oauth/revoke", oauth.revoke, name="oauth-revoke"),
    path("oauth/programs", consent.programs, name="oauth-programs"),
    path(".well-known/oauth-authorization-server", oauth.authorization_server, name="oauth-server"),
    path(".well-known/oauth-protected-resource/mcp/<str:agent>", oauth.protected_resource, name="oauth-resource"),
    path("mcp/<str:agent>", oauth.no_protocol, name="mcp"),
    path("health/live", live, name="health-live"),
    path("health/ready", ready, name="health-ready"),
    path("mcp/oauth/start/<str:server_id>", start, name="mcp-sign-in"),
    path("mcp/oauth/callback", callback, name="mcp-sign-in-callback"),
    path("v1/stream/__ds/jwks.json", public_keys, name="stream-keys"),
    path("v1/stream/__ds/subscriptions/<str:name>", subscription, name="stream-subscription"),
    re_path(
        r"^v1/stream/__ds/subscriptions/(?P<name>[^/]+)/(?P<verb>[\s\S]+)$",
        subscription_work,
        name="stream-subscription-work",
    ),
    re_path(r"^v1/stream/conversations/(?P<instance_id>[\s\S]+)$", conversation_stream, name="conversation-stream"),
    re_path(r"^v1/stream/turns/(?P<turn_id>[\s\S]+)$", turn_stream, name="turn-stream"),
    re_path(r"^v1/stream/(?P<path>[\s\S]+)$", durable_stream, name="durable-stream"),
    re_path(r"^agents/.+/get-messages$", get_messages, name="get-messages"),
    re_path(r"^agents/.+/chat$", chat, name="use-chat"),
    re_path(r"^agents/.+/chat/.+/stream$", chat_stream, name="use-chat-stream"),
]
