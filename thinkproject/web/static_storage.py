"""The storage of `collectstatic` in production: hashed names, compressed files beside them."""

from typing import Any

from whitenoise.compress import Compressor
from whitenoise.storage import CompressedManifestStaticFilesStorage

from thinkproject.web.hashed_names import has_hash


class HashedOnceStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # the package has no types
    """WhiteNoise's storage, which leaves the names that our build has hashed as they are.

    Modules of the page import each other by these names. Source maps are not compressed: only developers load them.
    """

    def hashed_name(self, name: str, content: Any = None, filename: str | None = None) -> str:
        """Add the hash to a name that has none."""
        return name if has_hash(name) else str(super().hashed_name(name, content, filename))

    def create_compressor(self, **kwargs: Any) -> Compressor:
        """Compress what WhiteNoise does, but for source maps."""
        kwargs["extensions"] = (*Compressor.SKIP_COMPRESS_EXTENSIONS, "map")
        return Compressor(**kwargs)
