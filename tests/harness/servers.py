"""Starts, kills and restarts the servers under test, each with its own directory and ports."""

import fcntl
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

PASSWORD = "manx-test"
DATABASE = "manx_test"
START_SECONDS = 60
STOP_SECONDS = 60


# From here on connections that go out take ports: one that is free may be theirs before a server starts.
FIRST_OUTGOING = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])


# Files of the ports that this process has taken.
_taken = {}


def take_port(port):
    """Whether nobody has a port, and no other test takes it before this process ends: a server that is down
    for a moment finds it free when it is started again."""
    folder = Path(tempfile.gettempdir()) / "manxdb-test-ports"
    folder.mkdir(exist_ok=True)
    file = open(folder / str(port), "w", encoding="ascii")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", port))
    except OSError:
        file.close()
        return False
    _taken[port] = file
    return True


def free_port():
    """A port for this process's servers, which no connection that goes out will take."""
    while True:
        port = random.randrange(10_000, FIRST_OUTGOING)
        if take_port(port):
            return port


class ServerError(Exception):
    """The server did not start or stop as it should."""


class Server:
    """A server process with a data directory that lives as long as this object."""

    name = "server"

    def __init__(self):
        self.directory = Path(tempfile.mkdtemp(prefix=f"manxdb-test-{self.name}-"))
        self.log_path = self.directory / "log"
        self.port = free_port()
        self.process = None
        # Where statements may read and write files of the server.
        self.files = self.directory / "files"
        self.files.mkdir()

    def command(self):
        """Command line of the server."""
        raise NotImplementedError

    def environment(self):
        """Environment of the server."""
        return dict(os.environ)

    def start(self):
        """Starts and waits until the server greets."""
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self.environment(), cwd=self.directory, start_new_session=True)
        self.wait_ready()
        return self

    def wait_ready(self):
        """Returns when the greeting packet arrives; raises when the process ends first."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise ServerError(f"{self.name} ended with {self.process.returncode}:\n{self.log_tail()}")
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=5) as link:
                    if len(link.recv(5)) == 5:
                        return
            except OSError:
                pass
            time.sleep(0.05)
        raise ServerError(f"{self.name} did not answer within {START_SECONDS} s:\n{self.log_tail()}")

    def log_tail(self, lines=30):
        """Last lines of the server's output."""
        if not self.log_path.exists():
            return ""
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:])

    def kill(self):
        """kill -9."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        """SIGTERM; returns the exit code, raises when the server does not end."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerError(f"{self.name} did not stop within {STOP_SECONDS} s of SIGTERM") from None

    def alive(self):
        """Whether the process runs."""
        return self.process is not None and self.process.poll() is None

    def cpu_seconds(self):
        """User and system time of the process so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        """Ends the process and removes its directory."""
        if self.alive():
            self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def address(self):
        """What a suite finds in its environment."""
        return {
            "MANXDB_TEST_HOST": "127.0.0.1", "MANXDB_TEST_PORT": str(self.port),
            "MANXDB_TEST_USER": "root", "MANXDB_TEST_PASSWORD": PASSWORD,
            "MANXDB_TEST_FILES": str(self.files), "MANXDB_TEST_DATABASE": DATABASE, "MANXDB_TEST_SERVER": self.name,
        }

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()


class Manxdb(Server):
    """`manxdb serve`."""

    name = "manxdb"

    def __init__(self, binary, extra=()):
        super().__init__()
        self.binary = Path(binary).resolve()
        self.extra = list(extra)
        self.admin_port = free_port()
        self.data = self.directory / "data"

    def command(self):
        return [str(self.binary), "serve", "--data", str(self.data),
                "--mysql-port", str(self.port), "--admin-port", str(self.admin_port),
                "--secure-file-priv", str(self.files), *self.extra]

    def environment(self):
        return {**os.environ, "MANXDB_ROOT_PASSWORD": PASSWORD}


class Mariadb(Server):
    """MariaDB with settings as close to MySQL 8's defaults as it goes."""

    name = "mariadb"

    def __init__(self, extra=()):
        super().__init__()
        self.extra = list(extra)
        self.data = self.directory / "data"
        # MariaDB's first steps use temporary tables with names made of a process id, and remove what
        # others left: two servers that begin at once need a directory each.
        self.temporary = self.directory / "tmp"
        self.temporary.mkdir()
        self.install()

    def environment(self):
        return {**os.environ, "TMPDIR": str(self.temporary)}

    def install(self):
        """Creates the system tables and the account the suites use."""
        init = self.directory / "init.sql"
        init.write_text(
            f"CREATE OR REPLACE USER root@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';\n"
            "GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n")
        self.init_file = init
        command = ["mariadb-install-db", "--no-defaults", f"--datadir={self.data}",
                   "--auth-root-authentication-method=normal", "--skip-test-db"]
        if os.geteuid() == 0:
            command.append("--user=root")
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=self.environment())
        if done.returncode != 0:
            raise ServerError(f"mariadb-install-db failed:\n{done.stdout}{done.stderr}")

    def command(self):
        command = [
            "mariadbd", "--no-defaults", f"--datadir={self.data}", f"--port={self.port}",
            "--bind-address=127.0.0.1", f"--socket={self.directory}/sock", "--skip-name-resolve",
            f"--pid-file={self.directory}/pid", f"--secure-file-priv={self.files}", "--character-set-server=utf8mb4",
            "--collation-server=utf8mb4_general_ci", "--max-allowed-packet=67108864",
            "--sql-mode=ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,"
            "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
            "--explicit-defaults-for-timestamp=1", "--innodb-buffer-pool-size=256M",
            "--innodb-lock-wait-timeout=5", "--performance-schema=0", *self.extra]
        if os.geteuid() == 0:
            command.append("--user=root")
        if not (self.directory / "pid.done").exists():
            command.append(f"--init-file={self.init_file}")
            (self.directory / "pid.done").touch()
        return command
