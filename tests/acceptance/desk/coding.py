"""The coding agent with threads, as its page describes it."""

from chat.think import ThreadAgent, ThreadsAgent


class DeskCoder(ThreadAgent):
    """Works on the files of one thread."""

    listed = False

    def get_model(self) -> str:
        return "default"


class DeskCoders(ThreadsAgent):
    """Keeps the threads of a person."""

    listed = False
    thread_agent = DeskCoder
