"""Limits of the requests of a user, or of a network, in a minute, over all processes.

What requests do is limited where it is done.
"""

import logging
import time

from redis.exceptions import RedisError

from chat.errors import QuotaExceeded
from thinkproject.kernel.cache import shared_cache
from thinkproject.kernel.phrases import Phrase

logger = logging.getLogger(__name__)


def count_request(door: str, user_id: object, limit: int) -> None:
    """Count one request of this user at a door. `limit`: of a minute; 0: none. Errors: `QuotaExceeded` beyond it.

    Without its cache it counts nothing, and the log has a warning: what is stored is still limited by the database.
    """
    if not limit:
        return
    minute, passed = divmod(int(time.time()), 60)
    name = f"think.{door}.requests.{user_id}.{minute}"
    try:
        shared_cache().add(name, 0, 120)
        count = shared_cache().incr(name)
    except (RedisError, OSError, ValueError):
        logger.warning("not counted", extra={"action": "request_not_counted", "door": door})
        return
    if count > limit:
        raise QuotaExceeded(
            Phrase("You have sent {limit} of these requests within a minute. Try again in a moment.", limit=limit),
            retry_after_seconds=60 - passed,
        )
