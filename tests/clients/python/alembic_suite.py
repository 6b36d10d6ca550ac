"""Alembic: migrations made from models, both ways; a second look must find nothing to do."""

import contextlib
import io
import shutil
import tempfile
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy import orm
from sqlalchemy.dialects import mysql

from harness.checks import DATABASE, HOST, PASSWORD, PORT, USER, check, expect, main

SERVER = f"mysql+pymysql://{USER}:{PASSWORD}@{HOST}:{PORT}/"
FOLDER = Path(tempfile.mkdtemp(prefix="manxdb-alembic-"))

# env.py of a project as `alembic init` lays it out, down to what it needs here.
ENVIRONMENT = """
import __main__
import sqlalchemy as sa
from alembic import context
engine = sa.create_engine(context.config.get_main_option("sqlalchemy.url"))
with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=__main__.MODELS[-1](),
                      compare_type=True, compare_server_default=True)
    with context.begin_transaction():
        context.run_migrations()
"""
TEMPLATE = """
from alembic import op
import sqlalchemy as sa
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
def upgrade():
    ${upgrades if upgrades else "pass"}
def downgrade():
    ${downgrades if downgrades else "pass"}
"""


def first():
    """Models with every kind of column, key and default that makes a spurious difference."""

    class Base(orm.DeclarativeBase):
        """All models."""

    class Person(Base):
        """Columns of every type."""

        __tablename__ = "person"
        __table_args__ = (
            sa.CheckConstraint("balance >= 0", name="person_solvent"),
            sa.Index("person_two", "name", "active"), sa.Index("person_bio", "bio", mysql_length=20),
            {"comment": "people's table"})
        id = sa.Column(sa.BigInteger, primary_key=True)
        name = sa.Column(sa.String(50), nullable=False, server_default="none")
        email = sa.Column(sa.String(190), unique=True)
        active = sa.Column(sa.Boolean, server_default="1", nullable=False)
        joined = sa.Column(sa.DateTime, server_default=sa.func.now())
        changed = sa.Column(sa.TIMESTAMP, nullable=False, server_default=sa.text(
            "CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"))
        moment = sa.Column(mysql.DATETIME(fsp=6))
        color = sa.Column(sa.Enum("red", "green", name="color"))
        balance = sa.Column(sa.Numeric(12, 2), server_default="0.00", nullable=False)
        count = sa.Column(mysql.INTEGER(unsigned=True), server_default="7")
        tiny = sa.Column(mysql.TINYINT)
        ratio, exact = sa.Column(sa.Float), sa.Column(sa.Double)
        day, hour, year = sa.Column(sa.Date), sa.Column(sa.Time), sa.Column(mysql.YEAR)
        bio = sa.Column(sa.Text, comment="tell us")
        long = sa.Column(mysql.LONGTEXT)
        raw, fixed = sa.Column(sa.LargeBinary), sa.Column(sa.BINARY(16))
        data, code = sa.Column(sa.JSON), sa.Column(sa.CHAR(3))
        exactly = sa.Column(sa.String(20, collation="utf8mb4_bin"))
        twice = sa.Column(sa.Integer, sa.Computed("count * 2"))
        boss = sa.Column(sa.ForeignKey("person.id", ondelete="SET NULL"))

    class Note(Base):
        """Belongs to a person."""

        __tablename__ = "note"
        __table_args__ = (sa.UniqueConstraint("person", "title", name="note_once"),)
        id = sa.Column(sa.Integer, primary_key=True)
        person = sa.Column(sa.ForeignKey("person.id", ondelete="CASCADE", onupdate="CASCADE"),
                           nullable=False, index=True)
        title = sa.Column(sa.String(100), nullable=False)

    return Base.metadata


def second():
    """The models after some time."""
    metadata = first()
    note, person = metadata.tables["note"], metadata.tables["person"]
    note.append_column(sa.Column("views", sa.Integer, server_default="0", nullable=False))
    note.c.title.type, note.c.title.nullable = sa.String(200), True
    person.c.bio.comment = "tell me"
    person.indexes.discard(next(index for index in person.indexes if index.name == "person_two"))
    sa.Index("note_title", note.c.title)
    return metadata


# The newest models; env.py looks here.
MODELS = [first]


def config():
    """A project in a folder of its own."""
    options = Config(stdout=io.StringIO())
    options.set_main_option("script_location", str(FOLDER))
    options.set_main_option("sqlalchemy.url", SERVER + DATABASE)
    return options


def generate(name):
    """Writes a migration; its `upgrade` as text."""
    with contextlib.redirect_stdout(io.StringIO()):
        script = command.revision(config(), name, autogenerate=True)
    text = Path(script.path).read_text()
    return text.split("def upgrade")[1].split("def downgrade")[0]


def tables():
    """What is there."""
    return sorted(sa.inspect(sa.create_engine(SERVER + DATABASE)).get_table_names())


@check
def a_migration_made_from_models_runs():
    engine = sa.create_engine(SERVER, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"DROP DATABASE IF EXISTS {DATABASE}"))
        connection.execute(sa.text(f"CREATE DATABASE {DATABASE}"))
    (FOLDER / "versions").mkdir()
    (FOLDER / "env.py").write_text(ENVIRONMENT)
    (FOLDER / "script.py.mako").write_text(TEMPLATE)
    assert "create_table('person'" in generate("first")
    command.upgrade(config(), "head")
    expect(tables(), ["alembic_version", "note", "person"])


@check
def a_second_look_finds_nothing_to_do():
    command.check(config())


@check
def changed_models_make_a_migration_that_settles_them():
    MODELS.append(second)
    text = generate("second")
    for part in ("add_column('note'", "alter_column('note', 'title'", "drop_index",
                 "create_index('note_title'", "comment='tell me'"):
        assert part in text, f"{part} not in {text}"
    expect(text.count("op."), 5 + text.count("op.f("), text)
    command.upgrade(config(), "head")
    command.check(config())


@check
def down_and_up_again():
    command.downgrade(config(), "-1")
    command.downgrade(config(), "base")
    expect(tables(), ["alembic_version"])
    command.upgrade(config(), "head")
    command.check(config())


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
