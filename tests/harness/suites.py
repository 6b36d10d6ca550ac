"""The list of suites: how each is prepared and run."""

import os
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

# All is built with the feature whose library setup.sh has installed: other suites use the same binary.
FEATURES = ["--features", "manxdb/libfabric"]
ROOT = Path(__file__).resolve().parent.parent.parent
TESTS = ROOT / "tests"
PYTHON = str(ROOT / ".venv" / "bin" / "python")


def target_directory():
    """Where cargo puts its output."""
    return Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()


# One client of each protocol, for a run of minutes.
QUICK = ("mariadb-cli", "pymysql")


@dataclass
class Suite:
    """One program that prints PASS and FAIL lines."""

    name: str
    run: list
    about: str
    prepare: list = field(default_factory=list)
    cwd: Path = TESTS
    # The suite starts servers itself (crash, differential) instead of being given one.
    own_server: bool = False
    only_manxdb: bool = False
    # After so long it hangs: several times what it takes on a machine that does other work too.
    seconds: int = 600
    by_default: bool = True


def python_suite(name, script, about, **more):
    """A script in .venv."""
    return Suite(name, [PYTHON, str(TESTS / script)], about, **more)


def all_suites():
    """Every suite in the order of a run: cheap and telling first."""
    clients = TESTS / "clients"
    go_binary = target_directory() / "clients-go" / "suite"
    go_redis = target_directory() / "clients-go" / "redis"
    rust_target = target_directory() / "clients-rust"
    jvm_target = target_directory() / "clients-jvm"
    return [
        python_suite("connect", "clients/python/connect.py",
                     "what 25 clients send when they connect"),
        Suite("mariadb-cli", ["bash", str(clients / "mariadb" / "suite.sh")],
              "the mariadb command line and mariadb-dump"),
        python_suite("pymysql", "clients/python/raw_pymysql.py", "PyMySQL"),
        python_suite("sqlalchemy", "clients/python/sqlalchemy_orm.py", "SQLAlchemy's ORM"),
        python_suite("django", "clients/python/django_suite.py",
                     "Django: migrate, ORM, test client"),
        # Suites of clients that treat a MariaDB unlike a MySQL run on ManxDB only.
        python_suite("connector-python", "clients/python/connector_suite.py",
                     "mysql-connector-python", only_manxdb=True),
        python_suite("peewee", "clients/python/peewee_suite.py", "peewee and its migrator"),
        python_suite("alembic", "clients/python/alembic_suite.py",
                     "Alembic: a second autogenerate is empty", only_manxdb=True),
        Suite("mysql2", ["node", "mysql2_suite.js"], "Node's mysql2", cwd=clients / "node"),
        Suite("sequelize", ["node", "sequelize_suite.js"], "Sequelize", cwd=clients / "node"),
        Suite("typeorm", ["node", "typeorm_suite.js"], "TypeORM: synchronize, migrations",
              cwd=clients / "node", only_manxdb=True),
        Suite("knex", ["node", "knex_suite.js"], "Knex: schemas, queries, migrations",
              cwd=clients / "node", only_manxdb=True),
        Suite("go", [str(go_binary)], "go-sql-driver and GORM", cwd=clients / "go",
              prepare=["go", "build", "-o", str(go_binary), "."]),
        Suite("rust", [str(rust_target / "debug" / "suite")], "sqlx and mysql_async",
              cwd=clients / "rust",
              prepare=["cargo", "build", "--quiet", "--locked", "--target-dir", str(rust_target)]),
        Suite("jvm", ["java", "-cp", f"{jvm_target}/classes:{jvm_target}/lib/*", "manxdb.suite.Main"],
              "Connector/J, MariaDB Connector/J, HikariCP, Flyway, Hibernate", cwd=clients / "jvm",
              prepare=["mvn", "-q", "-B", f"-Dsuite.target={jvm_target}", "compile"]),
        Suite("php", ["php", "suite.php"], "PHP's PDO and mysqli", cwd=clients / "php"),
        Suite("activerecord", ["ruby", "-W0", "suite.rb"], "Rails' ActiveRecord over mysql2",
              cwd=clients / "ruby"),
        python_suite("sql", "sql/run.py", "sqllogictest files"),
        python_suite("hostile", "hostile/run.py", "malformed packets and rude clients",
                     only_manxdb=True),
        python_suite("online-ddl", "online-ddl/run.py",
                     "dead clients, and tables that change under writers"),
        python_suite("differential", "differential/run.py",
                     "random statements against MariaDB", own_server=True, only_manxdb=True,
                     seconds=900),
        python_suite("lobsters", "lobsters/run.py",
                     "an application's pages against MariaDB", own_server=True, only_manxdb=True,
                     seconds=900),
        python_suite("ownership", "ownership/run.py",
                     "a forum and a shop whose people are forgotten",
                     own_server=True, only_manxdb=True),
        python_suite("console", "console/run.py", "the console of the admin port in headless Chromium",
                     own_server=True, only_manxdb=True),
        python_suite("quick-start", "quick-start/run.py", "docs/quick-start.md, done as it says",
                     own_server=True, only_manxdb=True),
        python_suite("isolation", "isolation/run.py",
                     "random transactions of real clients, judged by what each level promises"),
        python_suite("tpcc", "tpcc/run.py",
                     "TPC-C by a client that ends at its first error"),
        python_suite("disk", "disk/run.py", "full, read-only and damaged disks under a server",
                     own_server=True, only_manxdb=True),
        python_suite("cluster", "cluster/run.py", "processes of a cluster that die under load",
                     own_server=True, only_manxdb=True),
        python_suite("curp", "curp/run.py",
                     "Redis's keys in one round trip, by processes that die and stand still",
                     own_server=True, only_manxdb=True),
        python_suite("curp-sql", "curp/sql.py",
                     "SQL's rows in one round trip, by servers that die and stand still",
                     own_server=True, only_manxdb=True),
        python_suite("compaction", "compaction/run.py",
                     "compactions done by other processes, some of which die",
                     own_server=True, only_manxdb=True, seconds=900),
        python_suite("library", "library/run.py",
                     "compactions of other programs, in C++, Java and Go, done by a pool",
                     prepare=["cargo", "build", "--locked", "-p", "manxdb-compaction-library", "-p", "manxdb-test-features"],
                     own_server=True, only_manxdb=True, seconds=900),
        python_suite("memory", "memory/run.py",
                     "SQL on rows in memory servers, by servers that are killed and stopped",
                     own_server=True, only_manxdb=True, seconds=900),
        python_suite("memory-levels", "memory/levels.py",
                     "isolation between two servers on the same memory servers",
                     own_server=True, only_manxdb=True),
        python_suite("dist", "dist/run.py", "the packages of make dist in an empty root",
                     prepare=["bash", str(ROOT / "scripts" / "empty_root.sh")],
                     own_server=True, only_manxdb=True),
        python_suite("redis", "redis/run.py", "the Redis server beside redis-server, and under kill -9",
                     own_server=True, only_manxdb=True,
                     seconds=300 + 5 * int(os.environ.get("MANXDB_REDIS_CYCLES", "20"))),
        python_suite("redis-applications", "redis/applications.py",
                     "clients, queues and caches made for Redis, a day's work in small",
                     prepare=["bash", "-ec", 'go build -C "$1" -o "$2" ./redis; mvn -q -B -f "$3" -Dsuite.target="$4" compile',
                              "bash", str(clients / "go"), str(go_redis), str(clients / "jvm"), str(jvm_target)],
                     own_server=True, only_manxdb=True),
        python_suite("crash", "crash/run.py", "kill -9 under load", own_server=True, only_manxdb=True,
                     seconds=300 + 15 * int(os.environ.get("MANXDB_CRASH_CYCLES", "40"))),
    ]


def missing_tool(suite):
    """Name of the program the suite needs and does not find, or None."""
    program = (suite.prepare or suite.run)[0]
    if shutil.which(program) or Path(program).exists():
        return None
    return program


def suite_environment(server_address, binary):
    """Environment of a suite process."""
    environment = {**os.environ, **server_address, "PYTHONUNBUFFERED": "1",
                   "PYTHONPATH": str(TESTS), "PYTHONDONTWRITEBYTECODE": "1",
                   "MANXDB_TEST_PYTHON": sys.executable}
    if binary:
        environment["MANXDB_TEST_BINARY"] = str(binary)
    return environment
