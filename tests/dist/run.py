"""What `make dist` makes, installed where nothing of the build is.

The .deb and the archive are made of the program that other suites use, then installed into a root
file system that holds the release's essential packages only (scripts/empty_root.sh). The service
starts there as its unit says, as its own user, and a client from outside asks it something.
"""

import hashlib
import os
import re
import shutil
import socket
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pymysql

from harness.checks import Skip, check, expect, main
from harness.pool import PATIENCE
from harness.servers import PASSWORD, Manxdb, free_port

BINARY = Path(os.environ["MANXDB_TEST_BINARY"])
SCRIPTS = Path(__file__).resolve().parent.parent.parent / "scripts"
# What a bare system has: apt itself needs these.
BARE = {"adduser", "libc6", "libgcc-s1", "libstdc++6"}
UNIT = "lib/systemd/system/manxdb.service"
UNITS = ("manxdb.service", "manxdb-witness.service")


def run(*command, **how):
    """A command's output."""
    done = subprocess.run([str(word) for word in command], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=PATIENCE, **how)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} ended with {done.returncode}: {done.stdout}")
    return done.stdout


def make_dist(out):
    """Packs the program of this run."""
    run(SCRIPTS / "dist.py", "--fast", "--binary", BINARY, "--out", out)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in out.iterdir()}


class Place:
    """A folder for the packages, and empty roots; all go with the process."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="manxdb-test-dist-"))
        self.out = self.folder / "out"
        self.sums = {}
        self.deb_root = None

    def packages(self):
        """Packs at the first call."""
        if not self.sums:
            self.sums = make_dist(self.out)
        return self.out

    def only(self, pattern):
        """The one file of the packages with such a name."""
        found = list(self.packages().glob(pattern))
        expect(len(found), 1, pattern)
        return found[0]

    def root(self):
        """A new empty root."""
        if os.geteuid() != 0:
            raise Skip("installing into an empty root needs root")
        archive = run(SCRIPTS / "empty_root.sh").splitlines()[-1]
        root = Path(tempfile.mkdtemp(prefix="root-", dir=self.folder))
        run("tar", "-xf", archive, "-C", root)
        root.chmod(0o755)
        try:
            within(root, "true")
        except AssertionError as error:
            raise Skip(f"no mount or chroot here: {error}") from error
        return root

    def installed(self):
        """A root with the .deb installed."""
        if not self.deb_root:
            root = self.root()
            install(root)
            self.deb_root = root
        return self.deb_root


PLACE = Place()


def in_root(root, *command):
    """Words of a command with another root. Its /proc, where the loader finds out what $ORIGIN is, is
    mounted for that process alone."""
    return [shutil.which("unshare"), "--mount", "sh", "-c",
            f"PATH=/usr/sbin:/usr/bin:/sbin:/bin; export PATH; mount -t proc proc {root}/proc && exec chroot \"$@\"",
            "sh", *command]


def within(root, *command):
    """Runs a command with another root, and nothing of this environment."""
    return run("env", "-i", *in_root(root, root, *command))


def install(root):
    """The .deb, by dpkg."""
    package = PLACE.only("manxdb_*.deb")
    copied = Path(shutil.copy(package, root / "tmp"))
    return within(root, "dpkg", "--force-unsafe-io", "-i", f"/{copied.relative_to(root)}")


class Service(Manxdb):
    """The service as its unit says, without systemd: its command line, its user, its directory."""

    name = "manxdb-installed"

    def __init__(self, root, prefix="usr"):
        super().__init__(BINARY)
        self.root = root
        unit = (root / prefix / UNIT).read_text()
        self.settings = dict(re.findall(r"^(\w+)=(.*)$", unit, re.MULTILINE))
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)

    def command(self):
        user = self.settings["User"]
        return in_root(self.root, f"--userspec={user}:{self.settings['Group']}", str(self.root),
                       *self.settings["ExecStart"].split())

    def environment(self):
        return {"MANXDB_ROOT_PASSWORD": PASSWORD, "NOTIFY_SOCKET": "/run/notify",
                "MANXDB_MYSQL_LISTEN": f"127.0.0.1:{self.port}",
                "MANXDB_ADMIN_LISTEN": f"127.0.0.1:{self.admin_port}"}

    def start(self):
        # What systemd does for StateDirectory= and Type=notify.
        passwd = (self.root / "etc" / "passwd").read_text()
        account = next(line.split(":") for line in passwd.splitlines() if line.startswith("manxdb:"))
        state = self.root / "var" / "lib" / self.settings["StateDirectory"]
        state.mkdir(exist_ok=True, mode=0o750)
        os.chown(state, int(account[2]), int(account[3]))
        notify = self.root / "run" / "notify"
        notify.unlink(missing_ok=True)
        self.listener.bind(str(notify))
        self.listener.settimeout(PATIENCE)
        notify.chmod(0o777)
        return super().start()

    def close(self):
        super().close()
        self.listener.close()

    def told(self):
        """What the service manager hears next."""
        return self.listener.recv(4096).decode()

    def ask(self, *statements):
        """Answers to the last of some statements."""
        with pymysql.connect(host="127.0.0.1", port=self.port, user="root", password=PASSWORD,
                             connect_timeout=PATIENCE) as client, client.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            client.commit()
            return cursor.fetchall()


def serves(root, prefix="usr"):
    """Starts the service, writes a row, stops it in order; how many rows there are then."""
    with Service(root, prefix) as service:
        expect(service.told(), "READY=1", "to the service manager")
        owner = Path(f"/proc/{service.process.pid}").stat().st_uid
        assert owner != 0, "the service runs as root"
        service.ask("CREATE DATABASE IF NOT EXISTS shop", "CREATE TABLE IF NOT EXISTS shop.t (a INT)",
                    "INSERT INTO shop.t VALUES (7)")
        (rows, highest), = service.ask("SELECT COUNT(*), MAX(a) FROM shop.t")
        expect(highest, 7)
        expect(service.stop(), 0, "orderly stop")
        expect(service.told(), "STOPPING=1", "to the service manager")
        return rows


@check
def checksums_are_those_of_the_files():
    out = PLACE.packages()
    said = run("sha256sum", "-c", "SHA256SUMS", cwd=out)
    expect(sorted(line.split(":")[0] for line in said.splitlines()),
           sorted(name for name in PLACE.sums if name != "SHA256SUMS"), "files with a checksum")


@check
def the_same_program_makes_the_same_bytes():
    PLACE.packages()
    expect(make_dist(PLACE.folder / "again"), PLACE.sums, "packed a second time")


@check
def nothing_in_the_packages_points_at_the_build():
    with tarfile.open(PLACE.only("*.tar.gz")) as archive:
        archive.extractall(PLACE.folder / "unpacked", filter="data")
        top = PLACE.folder / "unpacked" / archive.getnames()[0]
        assert all(member.uid == member.gid == 0 for member in archive.getmembers()), "owned by root"
    for file in (top / "bin" / "manxdb", top / "lib" / "manxdb" / "librocksdb.so"):
        paths = re.findall(r"R(?:UN)?PATH.*\[(.*)\]", run("readelf", "-d", file))
        wanted = ["$ORIGIN/../lib/manxdb"] if file.name == "manxdb" else []
        expect(paths, wanted, f"where {file.name} looks for libraries")
    licences = (top / "share/doc/manxdb/THIRD-PARTY-LICENSES.txt").read_text()
    for named in ("librocksdb-sys", "aws-lc-sys", "sqlparser", "Permission is hereby granted"):
        assert named in licences, named
    assert "Apache License" in (top / "share/doc/manxdb/LICENSE").read_text()
    # Copied elsewhere, alone with its library, it runs.
    elsewhere = PLACE.folder / "elsewhere"
    for part in ("bin", "lib"):
        shutil.copytree(top / part, elsewhere / part)
    assert "manxdb" in run("env", "-i", elsewhere / "bin" / "manxdb", "version")
    run(elsewhere / "bin" / "manxdb", "config", "check", top / "share/doc/manxdb/manxdb.toml")


@check
def the_deb_depends_on_what_a_bare_system_has():
    said = run("dpkg-deb", "-f", PLACE.only("*.deb"), "Depends")
    needed = {word.split()[0] for word in said.strip().split(", ")}
    optional = {"libfabric1"} if "libfabric" in run("readelf", "-d", BINARY) else set()
    expect(needed - optional, BARE, "packages beside libfabric, which is a feature of this build")


@check
def the_deb_serves_from_an_empty_root_and_again_after_an_upgrade():
    root = PLACE.installed()
    serves(root)
    settings = root / "etc/manxdb/manxdb.toml"
    settings.write_text(settings.read_text() + 'log = "warn"\n')
    # The same version once more is an upgrade to dpkg: account, settings and rows stay.
    install(root)
    assert 'log = "warn"' in settings.read_text(), "an upgrade took the operator's settings away"
    expect(serves(root), 2, "rows with the one of before the upgrade")


@check
def removing_the_package_leaves_the_data():
    root = PLACE.installed()
    serves(root)
    within(root, "dpkg", "--purge", "manxdb")
    assert not (root / "usr/bin/manxdb").exists() and not (root / "etc/manxdb/manxdb.toml").exists()
    assert (root / "var/lib/manxdb/FORMAT").exists(), "a purge took the data"


@check
def the_archive_serves_below_usr_local_of_an_empty_root():
    root = PLACE.root()
    run("tar", "-xzf", PLACE.only("*.tar.gz"), "-C", root / "usr/local", "--strip-components=1", "--no-same-owner")
    # As its README.md says; an empty root has no systemd-sysusers of its own.
    assert re.search(r"^u manxdb - ", (root / "usr/local/lib/sysusers.d/manxdb.conf").read_text(), re.MULTILINE)
    within(root, "adduser", "--quiet", "--system", "--group", "--no-create-home", "manxdb")
    (root / "etc/manxdb").mkdir()
    shutil.copy(root / "usr/local/share/doc/manxdb/manxdb.toml", root / "etc/manxdb/manxdb.toml")
    serves(root, "usr/local")


@check
def the_units_are_ones_that_systemd_understands():
    if not shutil.which("systemd-analyze"):
        raise Skip("systemd-analyze is not installed")
    with tarfile.open(PLACE.only("*.tar.gz")) as archive:
        members = {member.name.rsplit("/", 1)[-1]: member for member in archive.getmembers()}
        texts = {name: archive.extractfile(members[name]).read().decode() for name in UNITS}
    for name, text in texts.items():
        unit = PLACE.folder / name
        # The program is not installed on this machine.
        unit.write_text(re.sub(r"^ExecStart=.*", "ExecStart=/bin/true", text, flags=re.MULTILINE))
        said = run("systemd-analyze", "verify", "--man=no", unit)
        expect([line for line in said.splitlines() if "manxdb" in line], [], f"what systemd says of {name}")


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(PLACE.folder, ignore_errors=True)
