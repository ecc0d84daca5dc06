"""Settings that several rooms of the chat read; each room has its own besides."""

from thinkproject.kernel.conf import MachineLimit, Setting


class ChatSettings:
    """Each is a Django setting and an environment variable of the same name."""

    overflow_formula = Setting("THINK_OVERFLOW_FORMULA", "v2")
    """The compaction policy of agents that name none: when a conversation counts as too long, and what of it is kept.
    `v1`, `v2`, `v3`, `share` or `files`. Change it where summaries come too late or lose too much."""

    token_counter = Setting("THINK_TOKEN_COUNTER", "estimate")
    """How tokens are counted: estimate, length_over_four, tiktoken:<encoding> or package.module:function. Set it where
    estimates are far from what the provider counts."""

    authority_seconds = MachineLimit("THINK_AUTHORITY_SECONDS", 15.0)
    """How often a live socket's user, session or token is checked again. Lower it where rights have to end at once."""


chat_settings = ChatSettings()
