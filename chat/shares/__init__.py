"""Links by which anybody who has them reads a conversation up to a message.

Reading order: `projection` (what may be seen), `services` (links are made and end), `reading` (what a secret opens).
"""
