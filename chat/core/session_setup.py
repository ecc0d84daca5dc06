"""What `configure_session` is given."""

from sessions_app.core.context_setup import ContextSetup


class SessionSetup(ContextSetup):
    """Choices about the session of a turn; every method returns the setup, so that calls chain."""
