"""peewee: models, its migrator, and models made from what is there."""

import datetime
import decimal

import peewee
import pymysql
from playhouse.migrate import MySQLMigrator, migrate
from playhouse.reflection import Introspector

from harness.checks import (DATABASE, HOST, PASSWORD, PORT, USER, check, expect, main)

ADDRESS = {"host": HOST, "port": PORT, "user": USER, "password": PASSWORD}
database = peewee.MySQLDatabase(DATABASE, **ADDRESS)


class Model(peewee.Model):
    """All models."""

    class Meta:
        """Where they are."""

        database = database


class Author(Model):
    """Columns of every type."""

    name = peewee.CharField(unique=True)
    age = peewee.IntegerField(index=True, null=True)
    balance = peewee.DecimalField(10, 3, default=0)
    ratio = peewee.DoubleField(null=True)
    born = peewee.DateField(null=True)
    joined = peewee.DateTimeField(default=datetime.datetime(2024, 1, 2, 3, 4, 5))
    hour = peewee.TimeField(null=True)
    active = peewee.BooleanField(default=True)
    photo = peewee.BlobField(null=True)
    bio = peewee.TextField(default="")


class Book(Model):
    """Belongs to an author."""

    author = peewee.ForeignKeyField(Author, backref="books", on_delete="CASCADE")
    title = peewee.CharField(constraints=[peewee.Check("title <> ''")])

    class Meta:
        """Keys."""

        indexes = ((("author", "title"), True),)


@check
def tables_are_made():
    admin = pymysql.connect(**ADDRESS)
    with admin.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        cursor.execute(f"CREATE DATABASE {DATABASE}")
    database.create_tables([Author, Book])
    database.create_tables([Author, Book], safe=True)
    expect(sorted(database.get_tables()), ["author", "book"])


@check
def rows_in_transactions_that_nest():
    with database.atomic():
        for number in range(10):
            author = Author.create(name=f"a{number}", age=number, balance=decimal.Decimal("1.250"),
                                   born=datetime.date(2020, 1, 1), photo=b"\x00\xff")
            Book.create(author=author, title=f"t{number}")
    with database.atomic() as outer:
        try:
            with database.atomic():
                Book.create(author=1, title="t0")
        except peewee.IntegrityError:
            pass
        Author.update(age=Author.age + 1).execute()
        outer.rollback()
    author = Author.get(Author.name == "a3")
    expect((author.age, author.balance, author.photo), (3, decimal.Decimal("1.250"), b"\x00\xff"))


@check
def duplicates_are_merged_replaced_and_ignored():
    Author.insert(name="a3", age=33).on_conflict(
        preserve=[Author.age], update={Author.bio: "merged"}).execute()
    Author.insert(name="a3", age=44).on_conflict_ignore().execute()
    author = Author.get(Author.name == "a3")
    expect((author.age, author.bio), (33, "merged"))
    Author.replace(name="a4", age=44).execute()
    expect(Book.select().where(Book.title == "t4").count(), 0, "replaced with its books")


@check
def queries_of_many_kinds():
    counted = (Author.select(Author.name, peewee.fn.COUNT(Book.id).alias("books"))
               .join(Book, peewee.JOIN.LEFT_OUTER).group_by(Author.id, Author.name)
               .having(peewee.fn.COUNT(Book.id) > 0).order_by(peewee.SQL("books").desc()))
    expect(len(list(counted)), 9)
    expect(Author.select().where(Author.name.contains("A1")).count(), 1)
    expect(Author.select().where(Author.name.regexp("^a[0-9]$")).count(), 10)
    expect(Author.select().where(Author.joined.year == 2024).count(), 10)
    ranked = Author.select(peewee.fn.RANK().over(order_by=[Author.age]).alias("place"))
    expect(len(list(ranked.tuples())), 10)
    young = Author.select(Author.id).where(Author.age < 3).cte("young")
    expect(len(list(young.select_from(young.c.id))), 3)
    either = Author.select(Author.name) | Book.select(Book.title)
    expect(len(list(either.tuples())), 19)
    expect(len(list(Author.select().where(Author.id.in_(Book.select(Book.author))).for_update())), 9)


@check
def models_are_made_from_tables():
    models = Introspector.from_database(database).generate_models()
    kinds = {name: type(field).__name__ for name, field in models["author"]._meta.fields.items()}
    expect((kinds["id"], kinds["name"], kinds["balance"], kinds["joined"]),
           ("AutoField", "CharField", "DecimalField", "DateTimeField"))
    keys = database.get_foreign_keys("book")
    expect([(key.column, key.dest_table, key.on_delete) for key in keys],
           [("author_id", "author", "CASCADE")])
    unique = [index.columns for index in database.get_indexes("book") if index.unique]
    assert ["author_id", "title"] in unique, unique


@check
def the_migrator_changes_tables():
    migrator = MySQLMigrator(database)
    migrate(migrator.add_column("author", "extra", peewee.CharField(default="z")),
            migrator.rename_column("author", "age", "years"),
            migrator.drop_column("author", "ratio"),
            migrator.drop_not_null("author", "balance"),
            migrator.alter_column_type("author", "bio", peewee.CharField(max_length=300)),
            migrator.add_index("author", ("extra", "years"), False),
            migrator.drop_index("author", "author_extra_years"),
            migrator.add_column("book", "editor_id", peewee.ForeignKeyField(
                Author, null=True, field=Author.id)),
            migrator.drop_column("book", "editor_id"),
            migrator.rename_table("book", "work"))
    columns = {column.name: column for column in database.get_columns("author")}
    assert "ratio" not in columns and columns["years"].data_type == "int", columns
    expect((columns["balance"].null, columns["bio"].data_type), (True, "varchar"))
    expect(sorted(database.get_tables()), ["author", "work"])


if __name__ == "__main__":
    main()
