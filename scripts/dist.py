#!/usr/bin/env python3
"""Makes what a user installs out of built programs: an archive, a .deb, a Containerfile, checksums.

manxdb is the server, manxdb-lab beside it its benchmarks and experiments.

`make dist` builds the release first. The same program and SOURCE_DATE_EPOCH (default: the time of
the last commit) give the same bytes. See packaging/README.md for what the files are.
"""

import argparse
import gzip
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from pathlib import Path

from dist_licences import third_party_licences

ROOT = Path(__file__).resolve().parent.parent
PACKAGING = ROOT / "packaging"
# Where the program looks for its library, from where it is.
RPATH = "$ORIGIN/../lib/manxdb"
# Libraries that are not the system's: they go along.
BUNDLED = ("librocksdb.so",)
# The second is found beside the first, where it is built and where it is installed.
PROGRAMS = ("manxdb", "manxdb-lab")
MAINTAINER = "ManxDB maintainers <maintainers@manxdb.example>"


def run(*command, cwd=None):
    """A command's standard output; what it says when it fails ends this program."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"dist: {' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def say(text):
    """One line for whoever watches."""
    print(f"dist: {text}", flush=True)


def dynamic(binary, tag):
    """Entries of the dynamic section: libraries for NEEDED, paths for RUNPATH."""
    return re.findall(rf"\({tag}\).*\[(.*)\]", run("readelf", "-d", binary))


def source_date():
    """Seconds since 1970 that every file gets."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    return int(run("git", "log", "-1", "--format=%ct", cwd=ROOT))


def write(path, text, mode=0o644):
    """A file with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def fill_in(template, **values):
    """A file of packaging/ with its @WORDS@ replaced; one that is left is an error of ours."""
    text = (PACKAGING / template).read_text()
    for word, value in values.items():
        text = text.replace(f"@{word}@", str(value))
    if left := re.search(r"@[A-Z_]+@", text):
        sys.exit(f"dist: packaging/{template}: {left[0]} has no value")
    return text


def copy_programs(binary, prefix):
    """The programs and the library that is not the system's, stripped, bound to each other."""
    (prefix / "bin").mkdir(parents=True)
    (prefix / "lib" / "manxdb").mkdir(parents=True)
    for name in PROGRAMS:
        if not (built := binary.with_name(name)).is_file():
            sys.exit(f"dist: {built} is missing: build it with `cargo build --release --bin {name}`")
        copy_program(built, prefix)


def copy_program(binary, prefix):
    """One of them, and its library if it is not there yet."""
    program = prefix / "bin" / binary.name
    run("strip", "-o", program, binary)
    program.chmod(0o755)
    needed = [name for name in dynamic(binary, "NEEDED") if name in BUNDLED]
    places = [Path(place) for paths in dynamic(binary, "RUNPATH") for place in paths.split(":")]
    for name in needed:
        found = next((place / name for place in places if (place / name).is_file()), None)
        if found is None:
            sys.exit(f"dist: {binary} needs {name}, which is not in its {places}: build it with make")
        library = prefix / "lib" / "manxdb" / name
        if library.exists():
            continue
        run("strip", "--strip-unneeded", "-o", library, found)
        library.chmod(0o644)
    # After stripping: patchelf moves tables that strip would move back.
    if needed:
        run("patchelf", "--set-rpath", RPATH, program)
    elif places:
        run("patchelf", "--remove-rpath", program)


def copy_texts(prefix, where, names, licences):
    """Unit, example of settings, documentation."""
    documents = prefix / "share" / "doc" / "manxdb"
    units = prefix / "lib" / "systemd" / "system"
    for unit in ("manxdb.service", "manxdb-witness.service"):
        write(units / unit, fill_in(unit, PREFIX=where))
    write(documents / "README.md", fill_in("README.md", **names))
    write(documents / "THIRD-PARTY-LICENSES.txt", licences)


def tree_of_archive(stage, binary, names, licences):
    """What the archive holds, below a folder with its name; for /usr/local or any place."""
    top = stage / names["ARCHIVE"]
    copy_programs(binary, top)
    copy_texts(top, "/usr/local", names, licences)
    documents = top / "share" / "doc" / "manxdb"
    write(documents / "manxdb.toml", fill_in("manxdb.toml"))
    write(documents / "LICENSE", (ROOT / "LICENSE").read_text())
    write(top / "lib" / "sysusers.d" / "manxdb.conf", fill_in("manxdb.sysusers"))
    return top


def dependencies(prefix):
    """What the .deb depends on, by the symbols that program and library use."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "debian" / "control", "Source: manxdb\n\nPackage: manxdb\nArchitecture: any\n")
        own = prefix / "lib" / "manxdb"
        files = [*(prefix / "bin").iterdir(), *own.iterdir()]
        said = run("dpkg-shlibdeps", "-O", "--ignore-missing-info", f"-l{own}",
                   *(f"-e{file}" for file in files), cwd=folder)
    return said.strip().removeprefix("shlibs:Depends=")


def changelog(names, seconds):
    """What policy wants of each package; the history itself is the repository's."""
    date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(seconds))
    text = (f"manxdb ({names['VERSION']}) unstable; urgency=medium\n\n  * Release {names['VERSION']}.\n\n"
            f" -- {names['MAINTAINER']}  {date}\n")
    return gzip.compress(text.encode(), mtime=0)


def tree_of_deb(stage, archive, names, licences, seconds):
    """What the .deb holds: the archive's program below /usr, settings in /etc, control files."""
    top, prefix = stage / "deb", stage / "deb" / "usr"
    for part in ("bin", "lib/manxdb"):
        shutil.copytree(archive / part, prefix / part)
    copy_texts(prefix, "/usr", names, licences)
    documents = prefix / "share" / "doc" / "manxdb"
    third = documents / "THIRD-PARTY-LICENSES.txt"
    third.with_suffix(".txt.gz").write_bytes(gzip.compress(third.read_bytes(), mtime=0))
    third.unlink()
    (documents / "changelog.gz").write_bytes(changelog(names, seconds))
    write(documents / "copyright", fill_in("debian/copyright"))
    write(prefix / "share" / "lintian" / "overrides" / "manxdb", fill_in("debian/lintian-overrides"))
    manual = gzip.compress(fill_in("manxdb.1", **names).encode(), mtime=0)
    for program in PROGRAMS:
        page = prefix / "share" / "man" / "man1" / f"{program}.1.gz"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_bytes(manual)
    write(top / "etc" / "manxdb" / "manxdb.toml", fill_in("manxdb.toml"))
    for name in ("postinst", "prerm", "postrm"):
        write(top / "DEBIAN" / name, fill_in(f"debian/{name}"), 0o755)
    write(top / "DEBIAN" / "conffiles", fill_in("debian/conffiles"))
    files = sorted(path for path in top.rglob("*") if path.is_file() and "DEBIAN" not in path.parts)
    sums = [f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(top)}\n"
            for path in files if "etc" not in path.relative_to(top).parts]
    write(top / "DEBIAN" / "md5sums", "".join(sums))
    write(top / "DEBIAN" / "control", fill_in(
        "debian/control", DEPENDS=dependencies(prefix),
        INSTALLED_KB=sum(-(-path.stat().st_size // 1024) for path in files), **names))
    return top


def settle(top, seconds):
    """The same modes and times whoever builds, with whatever umask."""
    for path in [top, *top.rglob("*")]:
        executable = path.is_dir() or path.stat().st_mode & 0o100
        path.chmod(0o755 if executable else 0o644)
        os.utime(path, (seconds, seconds))


def pack_archive(top, into, seconds, level):
    """A .tar.gz in the order of names, owned by root."""
    def plain(member):
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        member.mtime = seconds
        return member

    target = into / f"{top.name}.tar.gz"
    with open(target, "wb") as file, gzip.GzipFile("", "wb", level, file, mtime=0) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        archive.add(top, top.name, recursive=False, filter=plain)
        for path in sorted(top.rglob("*")):
            archive.add(path, f"{top.name}/{path.relative_to(top)}", recursive=False, filter=plain)
    return target


def pack_deb(top, into, names, seconds, level):
    """The .deb; dpkg-deb clamps times to SOURCE_DATE_EPOCH and sorts."""
    target = into / f"manxdb_{names['VERSION']}_{names['ARCHITECTURE']}.deb"
    os.environ["SOURCE_DATE_EPOCH"] = str(seconds)
    kind = ("-Zxz", "-z6") if level > 1 else ("-Zgzip", "-z1")
    run("dpkg-deb", "--root-owner-group", *kind, "--build", top, target)
    return target


def parse_arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, required=True, help="a manxdb that cargo has built, with manxdb-lab beside it")
    parser.add_argument("--out", type=Path, required=True, help="where the files go; made when missing")
    parser.add_argument("--fast", action="store_true", help="larger files, sooner: for tests")
    parser.add_argument("--maintainer", default=MAINTAINER, help="who the .deb says makes it")
    return parser.parse_args()


def main():
    """Stages both trees, packs them, sums them up."""
    options = parse_arguments()
    binary, out = options.binary.resolve(), options.out.resolve()
    with open(ROOT / "Cargo.toml", "rb") as file:
        version = tomllib.load(file)["workspace"]["package"]["version"]
    machine, seconds, level = platform.machine(), source_date(), 1 if options.fast else 9
    names = {"VERSION": version, "MACHINE": machine, "ARCHIVE": f"manxdb-{version}-linux-{machine}",
             "ARCHITECTURE": run("dpkg", "--print-architecture").strip(), "MAINTAINER": options.maintainer}
    out.mkdir(parents=True, exist_ok=True)
    say("licences of the libraries inside")
    licences = third_party_licences(ROOT)
    with tempfile.TemporaryDirectory(prefix="manxdb-dist-") as folder:
        stage = Path(folder)
        say(f"staging {binary}")
        archive = tree_of_archive(stage, binary, names, licences)
        deb = tree_of_deb(stage, archive, names, licences, seconds)
        for top in (archive, deb):
            settle(top, seconds)
        say("packing")
        made = [pack_archive(archive, out, seconds, level), pack_deb(deb, out, names, seconds, level)]
    write(out / "Containerfile", fill_in("Containerfile", **names))
    made.append(out / "Containerfile")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in made]
    write(out / "SHA256SUMS", "".join(sums))
    for path in made:
        say(f"{path} ({path.stat().st_size:,} bytes)")


if __name__ == "__main__":
    main()
