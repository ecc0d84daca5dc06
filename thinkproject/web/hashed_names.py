"""Names of static files that carry the hash of their content, as Django's storages and our build write them."""

import re

_HASHED = re.compile(r"\.[0-9a-f]{12}\.")


def has_hash(path: str) -> bool:
    """Whether a file's name has a hash in it: `app.0123456789ab.js`, `app.0123456789ab.js.map`."""
    return _HASHED.search(path.rpartition("/")[2]) is not None
