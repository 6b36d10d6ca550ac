"""Django: makemigrations, migrate forward and back, the ORM, sessions and the test client."""

import datetime
import decimal
import io
import logging
import shutil
import sys
import tempfile
import threading
import uuid
from pathlib import Path

import pymysql

pymysql.version_info = (2, 2, 8, "final", 0)  # Django asks for mysqlclient's version
pymysql.install_as_MySQLdb()

import django
from django.conf import settings

from harness.checks import (DATABASE, HOST, IS_MARIADB, PASSWORD, PORT, USER, check, expect,
                            expect_error, main)

# Migrations are generated in a copy: the source tree stays as it is.
WORK = Path(tempfile.mkdtemp(prefix="manxdb-django-"))
shutil.copytree(Path(__file__).parent / "blog", WORK / "blog")
sys.path.insert(0, str(WORK))

settings.configure(
    SECRET_KEY="test", DEBUG=False, ROOT_URLCONF="blog.views", USE_TZ=True, ALLOWED_HOSTS=["*"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField", LOGIN_URL="/login",
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth",
                    "django.contrib.sessions", "blog"],
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware",
                "django.contrib.auth.middleware.AuthenticationMiddleware"],
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    LOGGING_CONFIG=None,
    # MariaDB comes without its table of time zones; ManxDB has them built in.
    TIME_ZONE="UTC" if IS_MARIADB else "Europe/Prague",
    DATABASES={"default": {
        "ENGINE": "django.db.backends.mysql", "HOST": HOST, "PORT": PORT, "USER": USER,
        "PASSWORD": PASSWORD, "NAME": DATABASE, "OPTIONS": {"charset": "utf8mb4"}}})

admin = pymysql.connect(host=HOST, port=PORT, user=USER, password=PASSWORD, autocommit=True)
admin.cursor().execute(f"DROP DATABASE IF EXISTS {DATABASE}")
admin.cursor().execute(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
django.setup()
logging.disable(logging.CRITICAL)  # the view that is asked to fail would print its stack

from django.core.management import call_command
from django.db import IntegrityError, OperationalError, ProgrammingError, connection, transaction
from django.db.models import Avg, Case, Count, Exists, F, OuterRef, Prefetch, Q, Subquery, Sum, Value, When
from django.db.models.deletion import ProtectedError
from django.db.models.functions import Coalesce, Concat, ExtractYear, Length, Lower, TruncMonth
from django.test import Client

from blog.models import Article, Comment, Label, Profile, Writer


def command(*arguments, **options):
    """Output of a management command."""
    out = io.StringIO()
    call_command(*arguments, stdout=out, **options)
    return out.getvalue()


@check
def makemigrations_and_migrate():
    command("makemigrations", "blog", verbosity=1)
    command("migrate", verbosity=0)
    tables = set(connection.introspection.table_names())
    for name in ("blog_article", "blog_article_labels", "blog_comment", "auth_user", "django_session"):
        assert name in tables, tables
    expect(command("showmigrations", "blog").count("[X]"), 1)
    assert "No changes detected" in command("makemigrations", "blog", check=True)


@check
def system_check_with_the_database():
    call_command("check", databases=["default"])


@check
def inspectdb_reads_the_schema_back():
    text = command("inspectdb", "blog_article")
    assert "class BlogArticle" in text and "DecimalField(max_digits=8, decimal_places=2)" in text, text
    assert "ForeignKey('BlogWriter'" in text, text


@check
def create_a_graph():
    ann = Writer.objects.create(name="Ann", email="ann@example.org", born=datetime.date(1980, 1, 2))
    bob = Writer.objects.create(name="Bob")
    Profile.objects.create(writer=ann, settings={"theme": "dark", "sizes": [1, 2]}, token=uuid.UUID(int=7))
    labels = Label.objects.bulk_create([Label(name=name) for name in ("rust", "sql", "web")])
    labels = list(Label.objects.order_by("name"))
    first = Article.objects.create(writer=ann, title="First", price=decimal.Decimal("9.50"), rating=4.5,
                                   published=True, reading_time=datetime.timedelta(minutes=5),
                                   picture=b"\x00\x01")
    second = Article.objects.create(writer=ann, title="Second", views=10, published=True)
    Article.objects.create(writer=bob, title="Draft")
    first.labels.set(labels[:2])
    second.labels.add(labels[2], labels[1])
    top = Comment.objects.create(article=first, text="Hello")
    Comment.objects.create(article=first, parent=top, text="Reply 🐱")
    first.refresh_from_db()
    expect(first.price, decimal.Decimal("9.50"))
    expect(first.reading_time, datetime.timedelta(minutes=5))
    expect(bytes(first.picture), b"\x00\x01")
    expect(Profile.objects.get(writer=ann).settings, {"theme": "dark", "sizes": [1, 2]})
    expect(Profile.objects.get(token=uuid.UUID(int=7)).writer.name, "Ann")
    expect(top.replies.get().text, "Reply 🐱")


@check
def lookups_and_relations():
    expect(list(Article.objects.filter(writer__name="ann").values_list("title", flat=True)), ["First", "Second"])
    expect(Article.objects.filter(Q(title__startswith="F") | Q(views__gt=5)).count(), 2)
    expect(Article.objects.filter(title__icontains="SEC").count(), 1)
    expect(Article.objects.filter(title__contains="sec").count(), 0)
    expect(Article.objects.exclude(labels__name="sql").get().title, "Draft")
    expect(Article.objects.filter(labels__name__in=["rust", "web"]).distinct().count(), 2)
    expect(list(Article.objects.filter(comments__isnull=True).values_list("title", flat=True)), ["Second", "Draft"])
    expect(Writer.objects.filter(born__year=1980).get().name, "Ann")
    expect(Article.objects.filter(created__date__gte=datetime.date(2024, 1, 1)).count(), 3)
    expect(Article.objects.filter(price__range=(9, 10)).count(), 1)
    expect(Writer.objects.filter(name__regex="^A").count(), 1)
    expect(Profile.objects.filter(settings__theme="dark").count(), 1)
    expect([article.title for article in Article.objects.order_by("-views", "title")[1:3]], ["Draft", "First"])


@check
def aggregates_and_annotations():
    rows = Writer.objects.annotate(articles_count=Count("articles"), total=Coalesce(
        Sum("articles__price"), Value(decimal.Decimal(0)))).order_by("name")
    expect([(row.name, row.articles_count, row.total) for row in rows],
           [("Ann", 2, decimal.Decimal("9.50")), ("Bob", 1, decimal.Decimal("0"))])
    expect(Article.objects.aggregate(Avg("rating"))["rating__avg"], 4.5)
    rows = Label.objects.annotate(n=Count("articles", distinct=True)).filter(n__gte=2)
    expect([row.name for row in rows], ["sql"])
    rows = Article.objects.annotate(kind=Case(When(views__gte=10, then=Value("hot")), default=Value("cold"))
                                    ).order_by("id").values_list("kind", flat=True)
    expect(list(rows), ["cold", "hot", "cold"])
    row = Article.objects.annotate(name=Concat(Lower("title"), Value("-"), "writer__name"),
                                   size=Length("title"), year=ExtractYear("created"),
                                   month=TruncMonth("created")).first()
    expect((row.name, row.size), ("first-Ann", 5))
    assert row.year >= 2024 and row.month.day == 1


@check
def subqueries():
    newest = Article.objects.filter(writer=OuterRef("pk")).order_by("-id").values("title")[:1]
    expect(list(Writer.objects.annotate(last=Subquery(newest)).order_by("id").values_list("last", flat=True)),
           ["Second", "Draft"])
    commented = Comment.objects.filter(article__writer=OuterRef("pk"))
    expect(list(Writer.objects.filter(Exists(commented)).values_list("name", flat=True)), ["Ann"])
    expect(Article.objects.filter(writer__in=Writer.objects.filter(name__startswith="B")).get().title, "Draft")
    union = Writer.objects.values_list("name").union(Label.objects.values_list("name")).order_by("name")
    expect(len(list(union)), 5)


@check
def prefetch_and_select_related():
    articles = list(Article.objects.select_related("writer__profile").prefetch_related(
        "labels", Prefetch("comments", Comment.objects.filter(parent=None))))
    expect([len(article.labels.all()) for article in articles], [2, 2, 0])
    expect(len(articles[0].comments.all()), 1)
    expect(articles[0].writer.profile.settings["theme"], "dark")


@check
def updates_and_deletes():
    expect(Article.objects.filter(published=True).update(views=F("views") + 1), 2)
    expect(list(Article.objects.values_list("views", flat=True)), [1, 11, 0])
    _, created = Label.objects.get_or_create(name="new")
    assert created
    _, created = Label.objects.update_or_create(name="new", defaults={"name": "newer"})
    assert not created
    Label.objects.bulk_create([Label(name="newer"), Label(name="x")], ignore_conflicts=True)
    Label.objects.bulk_create([Label(name="x")], update_conflicts=True, update_fields=["name"])
    expect(Label.objects.count(), 5)
    expect(Label.objects.filter(name__in=["newer", "x"]).delete()[0], 2)
    articles = list(Article.objects.all())
    for article in articles:
        article.body = article.title.upper()
    Article.objects.bulk_update(articles, ["body"])
    expect(Article.objects.get(title="Draft").body, "DRAFT")


@check
def atomic_blocks():
    class Stop(Exception):
        """Ends a block."""

    with transaction.atomic():
        Label.objects.create(name="outer")
        try:
            with transaction.atomic():
                Label.objects.create(name="inner")
                raise Stop
        except Stop:
            pass
    expect(set(Label.objects.filter(name__in=["inner", "outer"]).values_list("name", flat=True)), {"outer"})
    Label.objects.filter(name="outer").delete()
    with transaction.atomic():
        expect(Writer.objects.select_for_update().get(name="Ann").name, "Ann")


@check
def integrity_errors():
    def duplicate():
        with transaction.atomic():
            Writer.objects.create(name="ANN")

    def orphan():
        with transaction.atomic():
            Comment.objects.create(article_id=999, text="x")

    def negative():
        with transaction.atomic():
            Article.objects.filter(title="Draft").update(price=-1)

    def parent_row():
        with transaction.atomic():
            connection.cursor().execute("DELETE FROM blog_writer WHERE name = 'Ann'")

    for numbers, function in ((1062, duplicate), (1452, orphan), ((3819, 4025), negative), (1451, parent_row)):
        error = expect_error(numbers, function)
        assert isinstance(error, IntegrityError if numbers != (3819, 4025) else (IntegrityError, OperationalError)), error
    try:
        Writer.objects.get(name="Ann").delete()
    except ProtectedError:
        pass
    else:
        raise AssertionError("PROTECT did not hold")
    error = expect_error(1064, connection.cursor().execute, "SELEKT 1")
    assert isinstance(error, ProgrammingError)


@check
def conflict_loses_no_update_and_lock_times_out():
    outcomes = []

    def add():
        try:
            for _ in range(20):
                with transaction.atomic():
                    article = Article.objects.select_for_update().get(title="Draft")
                    article.views += 1
                    article.save()
                outcomes.append(1)
        finally:
            connection.close()

    threads = [threading.Thread(target=add) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(len(outcomes), 60)
    expect(Article.objects.get(title="Draft").views, 60)
    holder = pymysql.connect(host=HOST, port=PORT, user=USER, password=PASSWORD, database=DATABASE)
    holder.cursor().execute("SELECT * FROM blog_article FOR UPDATE")
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
    error = expect_error(1205, Article.objects.filter(title="Draft").update, views=0)
    assert isinstance(error, OperationalError)
    holder.close()


@check
def statement_time_out():
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION max_statement_time = 0.1" if IS_MARIADB else "SET SESSION max_execution_time = 100")
        expect_error((3024, 1969), cursor.execute,
                     "SELECT COUNT(*) FROM auth_permission a, auth_permission b, auth_permission c, "
                     "auth_permission d, auth_permission e, auth_permission f WHERE a.id + b.id + f.id <> 0")
        cursor.execute("SET SESSION max_statement_time = 0" if IS_MARIADB else "SET SESSION max_execution_time = 0")


@check
def test_client_on_the_application():
    from django.contrib.auth.models import User
    client = Client()
    expect(client.get("/").json(), {"articles": [
        {"title": "First", "writer": "Ann", "comments": 2}, {"title": "Second", "writer": "Ann", "comments": 0}]})
    second = Article.objects.get(title="Second").pk
    expect(client.post(f"/comment/{second}", {"text": "hi"}, content_type="application/json").status_code, 201)
    try:
        client.post(f"/comment/{second}", {"text": "fail"}, content_type="application/json")
    except ValueError:
        pass
    expect(Comment.objects.filter(article=second).count(), 1)
    expect(client.get("/private").status_code, 302)
    User.objects.create_user("eve", password="secret")
    assert client.login(username="eve", password="secret")
    expect(client.get("/private").content, b"eve 1")
    expect(client.get("/private").content, b"eve 2")


@check
def a_later_migration_alters_tables_with_rows():
    models = WORK / "blog" / "models.py"
    from django.db import migrations as _migrations  # the module is loaded before files change
    (WORK / "blog" / "migrations" / "0002_change.py").write_text('''
from django.db import migrations, models
import django.db.models.deletion


def fill(apps, _editor):
    for article in apps.get_model("blog", "Article").objects.all():
        article.slug = article.title.lower()
        article.save()


class Migration(migrations.Migration):
    dependencies = [("blog", "0001_initial")]
    operations = [
        migrations.AddField("article", "slug", models.SlugField(default="", max_length=80)),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.AlterField("article", "slug", models.CharField(max_length=90, db_index=True)),
        migrations.AlterField("article", "rating", models.DecimalField(max_digits=5, decimal_places=1, null=True)),
        migrations.RenameField("writer", "email", "mail"),
        migrations.RemoveField("profile", "token"),
        migrations.CreateModel("Category", [
            ("id", models.BigAutoField(primary_key=True, serialize=False)),
            ("name", models.CharField(max_length=30, unique=True))]),
        migrations.AddField("article", "category", models.ForeignKey(
            "blog.Category", django.db.models.deletion.SET_NULL, null=True)),
        migrations.RemoveIndex("article", "article_recent"),
        migrations.AlterUniqueTogether("comment", {("article", "text")}),
        migrations.RenameModel("Comment", "Remark"),
    ]
''')
    assert models.exists()
    command("migrate", "blog", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute("SELECT slug, rating, category_id FROM blog_article ORDER BY id")
        expect(cursor.fetchall()[0], ("first", decimal.Decimal("4.5"), None))
        cursor.execute("SELECT COUNT(*) FROM blog_remark")
        expect(cursor.fetchall(), ((3,),))
        expect_error(1062, cursor.execute,
                     "INSERT INTO blog_remark (article_id, text) SELECT article_id, text FROM blog_remark")
    command("migrate", "blog", "0001", verbosity=0)
    columns = {column.name for column in connection.introspection.get_table_description(
        connection.cursor(), "blog_article")}
    assert "slug" not in columns and "category_id" not in columns, columns
    expect(Comment.objects.count(), 3)


@check
def dumpdata_flush_loaddata():
    file = WORK / "dump.json"
    call_command("dumpdata", "blog", output=str(file), verbosity=0)
    call_command("flush", interactive=False, verbosity=0)
    expect(Article.objects.count(), 0)
    call_command("loaddata", str(file), verbosity=0)
    expect((Article.objects.count(), Comment.objects.count(), Label.objects.count()), (3, 3, 3))
    call_command("migrate", "blog", "zero", verbosity=0)
    assert not [name for name in connection.introspection.table_names() if name.startswith("blog_")]


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(WORK, ignore_errors=True)
