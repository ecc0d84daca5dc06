"""The routes outside of the API's operations, by what guards them: for the access matrix."""

from tests.db.chat.access_operations import STREAMS

SIGNED_IN = {"api/v1/docs", "api/v1/openapi.json"}
PUBLIC = {
    "v1/stream/__ds/jwks.json": "public keys, by which webhooks are checked",
    "api/v1/": "a redirect-like marker that names the root",
    "^api/": "says that there is no such operation",
    "sign-in/": "the login page",
    "sign-in/<str:token>": "guarded by the link; tests in test_auth_sign_in.py",
    "sign-out/": "ends one's own session",
    "language/": "sets the language of one's own browser; tests in test_languages.py",
    "mcp/oauth/start/<str:server_id>": "servers of one's own alone; tests in mcp/test_sign_in.py",
    "mcp/oauth/callback": "guarded by the state, the user and the session; tests in mcp/test_sign_in.py",
    "oauth/programs": "leads to the settings",
    "oauth/authorize": "leads to the consent page; these: tests/db/chat/http/mcp",
    "oauth/token": "guarded by the code or refresh token and the verifier",
    "oauth/register": "open to programs, and limited",
    "oauth/revoke": "guarded by the token",
    ".well-known/oauth-authorization-server": "tells nothing of anybody",
    ".well-known/oauth-protected-resource/mcp/<str:agent>": "tells nothing of anybody",
    "mcp/<str:agent>": "says that there is no MCP; the endpoint is in front of Django",
    "preview/<str:kind>": "a document without content; tests in test_preview_frame.py",
    "manifest.webmanifest": "the same for all",
    "worker.js": "the same for all",
    "offline": "the same for all",
    "decide/<str:token>": "guarded by the signature, the person and the roles; tests in test_decision_links.py",
    "join/<str:secret>": "guarded by the secret of an invitation; tests in members/test_invitations.py",
    "shared/<str:secret>": "guarded by the secret of a link; tests in members/test_share_links.py",
    "shared/<str:secret>/files/<str:file_id>": "the same",
    "shared/<str:secret>/files/<str:file_id>/view": "the same",
    "health/live": "tells nothing of anybody",
    "health/ready": "tells nothing of anybody",
}
BY_NAME = {
    **dict.fromkeys(STREAMS, "streams and turns of one's own alone; tests in durable_streams/"),
    "oauth/consent": "the person's own decision; tests in programs/test_authorisation.py",
    "^agents/.+/get-messages$": "names are scoped to the caller; tested below",
    "^agents/.+/chat$": "the same; tests in test_use_chat_refusals.py",
    "^agents/.+/chat/.+/stream$": "the same",
}
PAGES = {
    "",
    "approvals",
    "settings",
    "settings/<slug:section>",
    "c/new",
    "c/<str:instance_id>",
    "work",
    "usage",
}  # of the web UI: the API's own answers, embedded; tested below
