"""The example's OpenID provider with faults: `fault=NAME` in the address of its page has it lie about that.

Run as `python -m tests.browser.odd_provider --port PORT`.
"""

from typing import Any

from joserfc.jwk import RSAKey

from examples.assistant.provider import Answer, Grant, Provider, main

FAULTS: dict[str, dict[str, Any]] = {
    "nonce": {"nonce": "of another request"},
    "issuer": {"iss": "https://elsewhere.example"},
    "audience": {"aud": "another program", "azp": "assistant"},
    "expiry": {"exp": 1},
    "subject": {"sub": ""},
    "takeover": {"sub": "mallory", "email": "ada@example.com", "preferred_username": "ada", "email_verified": True},
}


class OddProvider(Provider):
    """Lies as the request asks."""

    def claims(self, grant: Grant) -> dict[str, Any]:
        """Give what an ID token says, with the fault."""
        return {**super().claims(grant), **FAULTS.get(grant.request.get("fault", ""), {})}

    def token(self, form: dict[str, str], authorization: str) -> Answer:
        """Give the tokens; with the fault `key` signed by another key of the same name."""
        grant = self.grants.get(form.get("code", ""))
        if grant is None or grant.request.get("fault") != "key":
            return super().token(form, authorization)
        own = self.key
        self.key = RSAKey.generate_key(2048, {"kid": str(own.kid), "use": "sig", "alg": "RS256"})
        try:
            return super().token(form, authorization)
        finally:
            self.key = own


if __name__ == "__main__":
    main(OddProvider)
