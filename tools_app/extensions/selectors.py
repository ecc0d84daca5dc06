"""Reads about extensions that are part of other statements."""

from typing import Final

HAS_EXTENSIONS: Final = """(
    EXISTS (SELECT 1 FROM think_tools_extension e WHERE e.level = 'site')
    OR EXISTS (SELECT 1 FROM think_tools_extension e WHERE e.level = 'user' AND e.owner_id = :owner:)
    OR EXISTS (SELECT 1 FROM think_tools_extension e WHERE e.level = 'instance' AND e.scope = :instance:)
)"""
"""Whether an extension may concern a conversation, as part of a statement; put in its owner's and its own id."""
