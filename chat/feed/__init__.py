"""The change feed: names of what changed in conversations, in the order of commits, deletions included."""
