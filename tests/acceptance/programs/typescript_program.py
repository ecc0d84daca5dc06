"""The program in TypeScript with its packages, installed as its lock has them."""

from pathlib import Path
from typing import Final

from tests import npm

HERE: Final = Path(__file__).resolve().parent
PROGRAM: Final = npm.installed(HERE / "typescript", HERE / "typescript" / "dist", "program.ts")
