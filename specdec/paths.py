"""Find the folder `assets`: inside the installed package, or beside it in a checkout."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
ASSETS = next((place for place in (PACKAGE / "assets", PACKAGE.parent / "assets") if place.is_dir()), PACKAGE)
FAMILY = ASSETS / "family"  # the models of `methods.EMBEDDED`


def write_text(path: Path, text: str) -> None:
    """Write a file as a whole. Raises OSError; a file that the disk has no room for does not stay in part."""
    with path.open("w", encoding="utf-8") as file:
        try:
            file.write(text)
            file.flush()
        except OSError:
            if path.is_file():
                path.unlink()
            raise


def check_writable(path: Path) -> None:
    """Raise OSError for a file that cannot be written: now, not after the work."""
    is_new = not path.exists()
    path.open("a").close()
    if is_new:
        path.unlink()
