"""The texts that a model reads in the place of a result that a call never had."""

from typing import Final

DENIED: Final = "Tool execution denied by user"
INTERRUPTED: Final = "The tool call was interrupted before a result was recorded."
INPUT_CUT: Final = "The tool call was interrupted before its arguments were complete."
NOT_RUN: Final = "The tool call was approved but did not run before the next turn started."
