"""The review of changed files, as server code holds it."""

import asyncio

from chat.agent.base import InstanceKey
from chat.instance.workspaces import repository_of
from chat.models import Revert
from chat.runtime import review
from chat.runtime.review import Review, ReviewChoice
from chat.runtime.undo import find_conversation
from thinkproject.kernel.aio import db
from tools_app.workspace.repositories import Repository, RepositoryDifference, RepositoryState


class FileReview:
    """Decides about files that turns of one conversation changed. Each method is about the turns it is given, or all.

    Errors of all: `UndoImpossible` before the first turn, and for turns that are not of this conversation.
    """

    def __init__(self, key: InstanceKey) -> None:
        self._key = key

    async def read(self, *turn_ids: str) -> Review:
        """The changed files by path, with their hunks and what of it is kept. Takes seconds for long texts."""
        return await db(lambda: review.review(find_conversation(self._key), turn_ids))

    async def keep(self, choice: ReviewChoice, *turn_ids: str) -> None:
        """Mark a file, or some of its hunks, as kept. Writes no file. Errors: `FileConflict`."""
        await db(lambda: review.keep_changes(find_conversation(self._key), choice, turn_ids=turn_ids))

    async def undo(self, choice: ReviewChoice, *turn_ids: str) -> Revert:
        """Have a file, or some of its hunks, back as it was; a redo brings it again. Durability: one transaction.

        Errors: `FileConflict` where another hand has changed the file since, `UndoBusy`.
        """
        instance = find_conversation
        return await db(lambda: review.undo_changes(instance(self._key), choice, turn_ids=turn_ids, actor_id=None))

    async def patch(self, *turn_ids: str) -> bytes:
        """One patch for `git apply`, from before the turns to what they left."""
        return await db(lambda: review.patch_of(find_conversation(self._key), turn_ids))

    async def repository(self) -> RepositoryState:
        """The difference from the last commit, where the workspace is a directory of this machine with a repository.

        It comes from git, so work of people and of other programs is in it. Errors: `FileFailed` where there is none.
        """
        return await asyncio.to_thread((await self._repository()).state)

    async def repository_difference(self, path: str, was: str = "") -> RepositoryDifference:
        """The difference of one file, by hunks. `was`: its former path. Errors: as `repository`."""
        found = await self._repository()
        return await asyncio.to_thread(found.difference, path, was)

    async def repository_patch(self) -> bytes:
        """The same as a patch for `git apply`. Errors: as `repository`."""
        return await asyncio.to_thread((await self._repository()).patch)

    async def _repository(self) -> Repository:
        instance = await db(find_conversation, self._key)
        return await repository_of(self._key, instance.pk)
