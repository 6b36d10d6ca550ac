"""Licences of everything that is linked into manxdb and manxdb-lab, as one text."""

import json
import subprocess
import sys
from pathlib import Path

TEXTS = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT", "UNLICENSE")
# RocksDB is one of librocksdb-sys' folders; what the prebuilt library has inside beside it.
ROCKSDB = "librocksdb-sys"
ROCKSDB_TEXTS = ("rocksdb/LICENSE.Apache", "rocksdb/LICENSE.leveldb", "snappy/COPYING")
INSIDE_ROCKSDB = """\
librocksdb.so is RocksDB (Apache-2.0, or GPL-2.0; we take the first) as its authors publish it for
Java. It holds Snappy (BSD-3-Clause), LZ4 (BSD-2-Clause), Zstandard (BSD-3-Clause), zlib (Zlib) and
bzip2 (bzip2-1.0.6).
"""


def cargo(root, *arguments):
    """What cargo says; its error ends the program."""
    done = subprocess.run(["cargo", *arguments], cwd=root, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"dist: cargo {' '.join(arguments)} failed:\n{done.stderr}")
    return done.stdout


def linked_packages(root):
    """(name, version) of the outside crates that the program is linked with on this machine."""
    said = cargo(root, "tree", "--locked", "-p", "manxdb", "-p", "manxdb-lab-cli", "-e", "normal", "--prefix", "none", "-f", "{p}")
    words = [line.split() for line in said.splitlines() if line]
    return {(word[0], word[1].removeprefix("v")) for word in words}


def texts_of(package):
    """{relative name: text} of a crate's licence files, in the order of their names."""
    folder = Path(package["manifest_path"]).parent
    found = [path for path in sorted(folder.iterdir())
             if path.is_file() and path.name.upper().startswith(TEXTS)]
    if package["name"] == ROCKSDB:
        found += [folder / text for text in ROCKSDB_TEXTS]
    if (named := package.get("license_file")) and folder / named not in found:
        found.append(folder / named)
    return {str(path.relative_to(folder)): path.read_text(errors="replace").strip() for path in found}


def third_party_licences(root):
    """A list of crates with their licences, then each text once with the crates that bring it."""
    linked = linked_packages(root)
    metadata = json.loads(cargo(root, "metadata", "--locked", "--format-version", "1", "--filter-platform",
                                cargo_host(root)))
    packages = sorted((package for package in metadata["packages"]
                       if package["source"] and (package["name"], package["version"]) in linked),
                      key=lambda package: (package["name"], package["version"]))
    if len(packages) < 50 or ROCKSDB not in {package["name"] for package in packages}:
        sys.exit(f"dist: cargo names {len(packages)} crates only, which cannot be all")
    lines, owners = [], {}
    for package in packages:
        label = f"{package['name']} {package['version']}"
        texts = texts_of(package)
        authors = ", ".join(package["authors"])
        note = "" if texts else f" (no file with it in the package{'; by ' + authors if authors else ''})"
        lines.append(f"{label}: {package['license'] or package['license_file']}{note}")
        for name, text in texts.items():
            owners.setdefault(text, []).append(f"{label} ({name})")
    rule = "=" * 80
    parts = ["Software inside this package, and its licences.", INSIDE_ROCKSDB, "\n".join(lines)]
    parts += [f"{rule}\n{', '.join(names)}\n{rule}\n\n{text}" for text, names in owners.items()]
    return "\n\n".join(parts) + "\n"


def cargo_host(root):
    """The machine's triple, as rustc calls it."""
    said = subprocess.run(["rustc", "-vV"], cwd=root, text=True, capture_output=True, check=True).stdout
    return next(line.split()[1] for line in said.splitlines() if line.startswith("host:"))
