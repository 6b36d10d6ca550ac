"""SQLAlchemy 2: declarative models, sessions, reflection."""

import datetime
import decimal
import threading

import sqlalchemy as sa
from sqlalchemy import orm

from harness.checks import (DATABASE, HOST, IS_MARIADB, PASSWORD, PORT, USER, check, expect,
                            expect_error, main)

SERVER = f"mysql+pymysql://{USER}:{PASSWORD}@{HOST}:{PORT}/"


class Base(orm.DeclarativeBase):
    """All models."""


tagging = sa.Table(
    "tagging", Base.metadata,
    sa.Column("post_id", sa.ForeignKey("post.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("tag_id", sa.ForeignKey("tag.id"), primary_key=True))


class User(Base):
    """Writes posts."""

    __tablename__ = "user"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(50), unique=True)
    active: orm.Mapped[bool] = orm.mapped_column(default=True)
    joined: orm.Mapped[datetime.datetime] = orm.mapped_column(server_default=sa.func.now())
    posts: orm.Mapped[list["Post"]] = orm.relationship(back_populates="user")


class Post(Base):
    """Belongs to a user, has tags."""

    __tablename__ = "post"
    __table_args__ = (sa.Index("post_by_score", "score", "id"),
                      sa.CheckConstraint("score >= 0", name="score_positive"))
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    user_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("user.id"))
    title: orm.Mapped[str] = orm.mapped_column(sa.String(100))
    body: orm.Mapped[str | None] = orm.mapped_column(sa.Text)
    score: orm.Mapped[decimal.Decimal] = orm.mapped_column(sa.Numeric(8, 2), default=0)
    extra: orm.Mapped[dict | None] = orm.mapped_column(sa.JSON)
    version: orm.Mapped[int] = orm.mapped_column(default=0)
    user: orm.Mapped[User] = orm.relationship(back_populates="posts")
    tags: orm.Mapped[list["Tag"]] = orm.relationship(secondary=tagging, order_by="Tag.name")
    __mapper_args__ = {"version_id_col": version}


class Tag(Base):
    """A word."""

    __tablename__ = "tag"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(30), unique=True)


def make_database():
    """An empty database of our own."""
    admin = sa.create_engine(SERVER, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(sa.text(f"DROP DATABASE IF EXISTS {DATABASE}"))
        connection.execute(sa.text(f"CREATE DATABASE {DATABASE}"))
    return sa.create_engine(SERVER + DATABASE + "?charset=utf8mb4")


engine = make_database()


@check
def create_all_and_reflect():
    Base.metadata.create_all(engine)
    inspector = sa.inspect(engine)
    expect(sorted(inspector.get_table_names()), ["post", "tag", "tagging", "user"])
    columns = {column["name"]: column for column in inspector.get_columns("post")}
    expect(str(columns["score"]["type"]), "DECIMAL(8, 2)")
    expect(columns["body"]["nullable"], True)
    (key,) = inspector.get_foreign_keys("post")
    expect((key["constrained_columns"], key["referred_table"]), (["user_id"], "user"))
    expect(inspector.get_pk_constraint("tagging")["constrained_columns"], ["post_id", "tag_id"])
    assert "post_by_score" in {index["name"] for index in inspector.get_indexes("post")}
    expect([check_["name"] for check_ in inspector.get_check_constraints("post")], ["score_positive"])
    reflected = sa.MetaData()
    reflected.reflect(engine)
    expect(sorted(reflected.tables), ["post", "tag", "tagging", "user"])
    Base.metadata.create_all(engine)  # the second time finds all tables


@check
def unit_of_work_writes_a_graph():
    with orm.Session(engine) as session:
        tags = [Tag(name=name) for name in ("rust", "sql", "web")]
        ann = User(name="ann", posts=[
            Post(title="One", score=decimal.Decimal("1.50"), tags=tags[:2], extra={"a": [1, None]}),
            Post(title="Two", score=2, tags=tags[1:])])
        session.add_all([ann, User(name="bob", active=False)])
        session.commit()
    with orm.Session(engine) as session:
        ann = session.scalars(sa.select(User).where(User.name == "ann")).one()
        expect([post.title for post in ann.posts], ["One", "Two"])
        expect([tag.name for tag in ann.posts[0].tags], ["rust", "sql"])
        expect(ann.posts[0].extra, {"a": [1, None]})
        expect(ann.posts[0].score, decimal.Decimal("1.50"))
        expect(ann.active, True)
        assert ann.joined.year >= 2024


@check
def queries_with_joins_and_aggregates():
    with orm.Session(engine) as session:
        rows = session.execute(
            sa.select(User.name, sa.func.count(Post.id), sa.func.coalesce(sa.func.sum(Post.score), 0))
            .outerjoin(Post).group_by(User.id, User.name).order_by(User.name)).all()
        expect([tuple(row) for row in rows],
               [("ann", 2, decimal.Decimal("3.50")), ("bob", 0, decimal.Decimal("0"))])
        rows = session.scalars(
            sa.select(Post.title).join(Post.tags).where(Tag.name.in_(["rust", "web"]))
            .order_by(Post.title.desc()).distinct()).all()
        expect(rows, ["Two", "One"])
        best = sa.select(sa.func.max(Post.score)).scalar_subquery()
        expect(session.scalars(sa.select(Post.title).where(Post.score == best)).all(), ["Two"])
        has_posts = sa.select(Post.id).where(Post.user_id == User.id).exists()
        expect(session.scalars(sa.select(User.name).where(~has_posts)).all(), ["bob"])


@check
def eager_loading_strategies():
    with orm.Session(engine) as session:
        for strategy in (orm.joinedload, orm.selectinload, orm.subqueryload):
            users = session.scalars(sa.select(User).options(strategy(User.posts)).order_by(User.id)
                                    .limit(2)).unique().all()
            expect([len(user.posts) for user in users], [2, 0], strategy.__name__)
            session.expire_all()


@check
def update_delete_and_cascade():
    with orm.Session(engine) as session:
        session.execute(sa.update(Post).where(Post.title == "One").values(score=Post.score + 1))
        expect(session.scalar(sa.select(Post.score).where(Post.title == "One")), decimal.Decimal("2.50"))
        session.execute(sa.delete(Post).where(Post.title == "One"))
        expect(session.scalar(sa.select(sa.func.count()).select_from(tagging)), 2)
        session.rollback()
        expect(session.scalar(sa.select(sa.func.count()).select_from(tagging)), 4)


@check
def nested_transaction_rolls_back_alone():
    with orm.Session(engine) as session:
        session.add(User(name="kept"))
        session.flush()
        try:
            with session.begin_nested():
                session.add(User(name="ann"))
        except sa.exc.IntegrityError:
            pass
        session.commit()
        expect(session.scalar(sa.select(sa.func.count()).where(User.name == "kept")), 1)


@check
def errors_are_mapped():
    with orm.Session(engine) as session:
        session.add(User(name="ann"))
        error = expect_error(1062, session.flush)
        assert isinstance(error, sa.exc.IntegrityError)
        session.rollback()
        session.add(Post(title="Orphan", user_id=999))
        expect_error(1452, session.flush)
        session.rollback()
        session.delete(session.scalars(sa.select(Tag).where(Tag.name == "sql")).one())
        expect_error(1451, session.flush)
        session.rollback()
        session.add(Post(title="Negative", user_id=1, score=-1))
        error = expect_error((3819, 4025), session.flush)
        session.rollback()
        error = expect_error(1064, session.execute, sa.text("SELEKT 1"))
        assert isinstance(error, sa.exc.ProgrammingError)


@check
def optimistic_version_detects_a_lost_update():
    with orm.Session(engine) as first, orm.Session(engine) as second:
        one = first.scalars(sa.select(Post).where(Post.title == "Two")).one()
        other = second.scalars(sa.select(Post).where(Post.title == "Two")).one()
        one.body = "first"
        first.commit()
        other.body = "second"
        try:
            second.commit()
        except (orm.exc.StaleDataError, sa.exc.OperationalError):
            second.rollback()
        else:
            raise AssertionError("the stale write was taken")
    with orm.Session(engine) as session:
        expect(session.scalar(sa.select(Post.body).where(Post.title == "Two")), "first")


@check
def concurrent_increments_at_serializable_lose_nothing():
    strict = engine.execution_options(isolation_level="SERIALIZABLE")
    with orm.Session(engine) as session:
        session.add(User(id=500, name="counter"))
        session.add(Post(id=500, user_id=500, title="counter", score=0))
        session.commit()
    done = []

    def work():
        for _ in range(10):
            for _attempt in range(200):
                try:
                    with strict.begin() as connection:
                        score = connection.scalar(sa.text("SELECT score FROM post WHERE id = 500"))
                        connection.execute(sa.text("UPDATE post SET score = :s WHERE id = 500"),
                                           {"s": score + 1})
                except sa.exc.OperationalError as error:
                    if error.orig.args[0] not in (1213, 1205):
                        raise
                else:
                    done.append(1)
                    break

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with engine.connect() as connection:
        expect(int(connection.scalar(sa.text("SELECT score FROM post WHERE id = 500"))), len(done))
    expect(len(done), 40)


@check
def time_out_is_an_operational_error():
    with engine.connect() as holder, engine.connect() as waiter:
        holder.execute(sa.text("SELECT * FROM user WHERE id = 1 FOR UPDATE"))
        waiter.execute(sa.text("SET SESSION innodb_lock_wait_timeout = 1"))
        expect_error(1205, waiter.execute, sa.text("UPDATE user SET active = 0 WHERE id = 1"))
        waiter.rollback()
        if not IS_MARIADB:
            waiter.execute(sa.text("SET SESSION max_execution_time = 100"))
            expect_error(3024, waiter.execute, sa.text("SELECT COUNT(*) FROM user a, user b WHERE SLEEP(1) = 0"))
            waiter.execute(sa.text("SET SESSION max_execution_time = 0"))
            waiter.commit()


@check
def drop_all():
    Base.metadata.drop_all(engine)
    expect(sa.inspect(engine).get_table_names(), [])


if __name__ == "__main__":
    main()
