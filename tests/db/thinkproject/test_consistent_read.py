"""Reads of one moment: they wait for no writer, and no writer waits for them."""

import threading
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from thinkproject.kernel.consistent_read import consistent_read

pytestmark = pytest.mark.django_db(transaction=True)


def beside(work: Callable[[], None]) -> threading.Thread:
    """Do this in a transaction of another connection."""

    def run() -> None:
        try:
            with transaction.atomic():
                work()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def add() -> None:
    User.objects.create(username="later")


def test_a_writer_waits_for_no_reader_and_the_reader_sees_nothing_of_it() -> None:
    with consistent_read():
        assert User.objects.count() == 0
        writer = beside(add)
        writer.join(20)
        assert not writer.is_alive()
        assert User.objects.count() == 0
    assert User.objects.count() == 1


def test_a_reader_waits_for_no_writer() -> None:
    written, read = threading.Event(), threading.Event()

    def hold() -> None:
        add()
        written.set()
        read.wait(20)

    writer = beside(hold)
    try:
        assert written.wait(20)
        with consistent_read():
            assert User.objects.count() == 0
    finally:
        read.set()
        writer.join(20)
    assert User.objects.count() == 1


def test_a_reader_within_a_writer_sees_what_that_wrote() -> None:
    with transaction.atomic():
        add()
        with consistent_read():
            assert User.objects.count() == 1
    assert beside_is_free()


def add_another() -> None:
    User.objects.create(username="another")


def beside_is_free() -> bool:
    """Whether others can write again."""
    writer = beside(add_another)
    writer.join(20)
    return not writer.is_alive()
