"""What `configure_session` is given."""

from chat.core.context.compaction_setup import CompactionSetup
from sessions_app.core.context.context_setup import ContextSetup


class SessionSetup(ContextSetup, CompactionSetup):
    """Choices about the session of a turn; every method returns the setup, so that calls chain."""
