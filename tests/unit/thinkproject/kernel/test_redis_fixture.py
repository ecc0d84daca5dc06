"""The test run's own Redis answers."""

import redis


def test_redis_answers(redis_url: str) -> None:
    assert redis.Redis.from_url(redis_url).ping() is True
