"""Find the folder `assets`: inside the installed package, or beside it in a checkout."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
ASSETS = next((place for place in (PACKAGE / "assets", PACKAGE.parent / "assets") if place.is_dir()), PACKAGE)
