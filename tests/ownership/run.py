"""A forum and a shop whose rows have owners, through the `mariadb` client: what COMMIT refuses, what a
person's data is, what is left when the person is forgotten, and a dump that goes out and in.

    run.py
"""

import os
import subprocess
import sys

from harness.servers import PASSWORD, Manxdb
from sealed import sealed

FORUM = """
CREATE DATA_SUBJECT TABLE members (id INT AUTO_INCREMENT PRIMARY KEY, nick VARCHAR(30) NOT NULL UNIQUE);
CREATE TABLE topics (id INT AUTO_INCREMENT PRIMARY KEY, member_id INT, title VARCHAR(80),
  FOREIGN KEY (member_id) OWNED_BY members (id)) UNOWNED ALLOWED;
CREATE TABLE posts (id INT AUTO_INCREMENT PRIMARY KEY, member_id INT NOT NULL OWNED_BY members (id),
  topic_id INT ACCESSED_BY topics (id), body TEXT);
CREATE TABLE likes (post_id INT NOT NULL ACCESSED_BY posts (id), member_id INT NOT NULL OWNED_BY members (id),
  PRIMARY KEY (post_id, member_id));
CREATE TABLE mails (id INT AUTO_INCREMENT PRIMARY KEY, sender INT OWNED_BY members (id),
  receiver INT OWNED_BY members (id), body TEXT, ON DEL sender ANON (sender));
CREATE TABLE groups_ (id INT PRIMARY KEY, name VARCHAR(30));
CREATE TABLE memberships (id INT AUTO_INCREMENT PRIMARY KEY, member_id INT NOT NULL OWNED_BY members (id),
  group_id INT NOT NULL OWNS groups_ (id));
CREATE TABLE group_notes (id INT PRIMARY KEY, group_id INT NOT NULL OWNED_BY groups_ (id), note TEXT);
INSERT INTO members (nick) VALUES ('ann'), ('bob'), ('cy');
INSERT INTO topics (member_id, title) VALUES (1, 'hello'), (2, 'news');
INSERT INTO posts (member_id, topic_id, body) VALUES (1, 1, 'first'), (2, 1, 'welcome'), (1, 2, 'ok');
INSERT INTO likes VALUES (1, 2), (2, 1), (3, 3);
INSERT INTO mails (sender, receiver, body) VALUES (1, 2, 'hi'), (2, 3, 'psst');
BEGIN;
INSERT INTO groups_ VALUES (1, 'cooks'), (2, 'ann alone');
INSERT INTO memberships (member_id, group_id) VALUES (1, 1), (2, 1), (1, 2);
COMMIT;
INSERT INTO group_notes VALUES (1, 1, 'salt'), (2, 2, 'diary');
"""

SHOP = """
CREATE DATA_SUBJECT TABLE customers (country CHAR(2), number INT, email VARCHAR(60), PRIMARY KEY (country, number));
CREATE TABLE carts (id INT PRIMARY KEY, country CHAR(2), number INT,
  FOREIGN KEY (country, number) OWNED_BY customers (country, number)) UNOWNED ALLOWED;
CREATE TABLE cart_items (cart_id INT NOT NULL OWNED_BY carts (id), product INT NOT NULL, PRIMARY KEY (cart_id, product))
  UNOWNED ALLOWED;
CREATE TABLE orders (id INT PRIMARY KEY, country CHAR(2) NOT NULL, number INT NOT NULL, total DECIMAL(9,2),
  FOREIGN KEY (country, number) OWNED_BY customers (country, number));
CREATE TABLE order_lines (order_id INT NOT NULL OWNED_BY orders (id), product INT NOT NULL, PRIMARY KEY (order_id, product));
CREATE TABLE invoices (id INT PRIMARY KEY, order_id INT, total DECIMAL(9,2),
  FOREIGN KEY (order_id) REFERENCES ONLY orders (id));
INSERT INTO customers VALUES ('de', 1, 'a@example.org'), ('fr', 1, 'b@example.org');
INSERT INTO carts VALUES (1, 'de', 1), (2, NULL, NULL);
INSERT INTO cart_items VALUES (1, 10), (2, 11);
INSERT INTO orders VALUES (1, 'de', 1, 9.90), (2, 'fr', 1, 5.00);
INSERT INTO order_lines VALUES (1, 10), (1, 11), (2, 12);
INSERT INTO invoices VALUES (1, 1, 9.90), (2, 2, 5.00);
"""


def client(program, server, *arguments, stdin=None):
    """(exit code, output, errors) of one of MariaDB's programs."""
    command = [program, "-h127.0.0.1", f"-P{server.port}", "-uroot", *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False,
                          env={**os.environ, "MYSQL_PWD": PASSWORD})
    return done.returncode, done.stdout, done.stderr


class Site:
    """One database, and what is expected of it."""

    def __init__(self, server, database, schema):
        self.server, self.database, self.good = server, database, True
        client("mariadb", server, "-e", f"CREATE DATABASE {database}")
        code, _, errors = client("mariadb", server, database, stdin=schema)
        self.check("is made and filled", code == 0, errors)

    def check(self, name, good, why=""):
        """Prints a result as the runner reads it."""
        print(f"PASS {self.database} {name}" if good else f"FAIL {self.database} {name}: {why[-1200:]}", flush=True)
        self.good = self.good and good

    def refuses(self, statements, code):
        """These end with an error of this number."""
        _, _, errors = client("mariadb", self.server, self.database, "-e", statements)
        self.check(f"refuses {statements}", f"ERROR {code} " in errors, errors)

    def answers(self, statement, expected):
        """Its rows, columns parted by a space."""
        _, rows, errors = client("mariadb", self.server, "-N", self.database, "-e", statement)
        got = [line.replace("\t", " ") for line in rows.splitlines()]
        self.check(f"answers {statement}", got == expected, f"{got} {errors}")

    def comes_back(self):
        """Its dump loads, tables and rows in the order of their names, and nothing waits for an owner."""
        _, dump, _ = client("mariadb-dump", self.server, self.database)
        again = f"{self.database}_again"
        client("mariadb", self.server, "-e", f"CREATE DATABASE {again}")
        code, _, errors = client("mariadb", self.server, again, stdin=dump)
        self.check("is dumped and loaded", code == 0, errors)
        _, text, errors = client("mariadb", self.server, again, "-e", "EXPLAIN COMPLIANCE")
        self.check("has every owner after it", text and "wait for one" not in text, text + errors)


def forum(server):
    """Members, posts that others like, mails between two, groups that several own."""
    site = Site(server, "forum", FORUM)
    site.refuses("INSERT INTO groups_ VALUES (3, 'nobody')", 51001)
    site.refuses("DELETE FROM memberships WHERE group_id = 2", 51001)
    site.refuses("UPDATE mails SET sender = NULL, receiver = NULL", 51001)
    site.comes_back()
    site.answers("EXPLAIN GDPR FORGET members 1", [
        "members delete 1 DATA_SUBJECT",
        "likes delete 1 likes.member_id OWNED_BY members",
        "likes keep 2 is not the person's; post_id goes on naming a row of 'posts' that goes",
        "mails anonymise 1 ON DEL sender ANON (sender); others own it too",
        "memberships delete 2 memberships.member_id OWNED_BY members",
        "posts anonymise 1 clears topic_id, a row of 'topics' goes; is not the person's",
        "posts delete 2 posts.member_id OWNED_BY members",
        "topics delete 1 topics.member_id OWNED_BY members",
        "groups_ delete 1 memberships.group_id OWNS groups_",
        "groups_ keep 1 others own it too",
        "group_notes delete 1 group_notes.group_id OWNED_BY groups_",
        "group_notes keep 1 others own it too",
    ])
    client("mariadb", server, site.database, "-e", "GDPR FORGET members 1 REASON 'by letter'")
    site.answers("SELECT id, nick FROM members", ["2 bob", "3 cy"])
    site.answers("SELECT * FROM posts", ["2 2 NULL welcome"])
    site.answers("SELECT * FROM mails", ["1 NULL 2 hi", "2 2 3 psst"])
    site.answers("SELECT note FROM group_notes", ["salt"])
    site.answers("SELECT COUNT(*) FROM likes", ["2"])
    client("mariadb", server, site.database, "-e",
           "ALTER TABLE mails ADD COLUMN sent DATE, ADD RETAIN FOR 10 YEAR AFTER sent; UPDATE mails SET sent = '1990-01-01';"
           "GDPR HOLD members 3 ON likes REASON 'case 7'; GDPR FORGET members 3")
    site.answers("SELECT COUNT(*) FROM members", ["2"])
    site.refuses("INSERT INTO topics (member_id) VALUES (3)", 51002)
    client("mariadb", server, site.database, "-e", "GDPR RELEASE members 3")
    site.answers("SELECT COUNT(*) FROM likes", ["1"])
    site.answers("SELECT receiver FROM mails WHERE id = 2", ["NULL"])
    site.refuses("GDPR UNDO members 3", 51008)
    site.refuses("GDPR GET members 1", 51004)
    site.refuses("INSERT INTO topics (member_id) VALUES (1)", 51002)
    site.comes_back()
    return site.good


def shop(server):
    """Customers by country and number, carts of guests, orders whose invoices are kept."""
    site = Site(server, "shop", SHOP)
    site.refuses("INSERT INTO order_lines VALUES (9, 1)", 1452)
    site.comes_back()
    client("mariadb", server, site.database, "-e", "GDPR FORGET customers ('DE', 1)")
    site.answers("SELECT country, number FROM customers", ["fr 1"])
    site.answers("SELECT * FROM cart_items", ["2 11"])
    site.answers("SELECT order_id FROM order_lines", ["2"])
    site.answers("SELECT * FROM invoices", ["1 NULL 9.90", "2 2 5.00"])
    site.refuses("GDPR FORGET customers ('de', 1)", 51004)
    site.comes_back()
    return site.good


def main():
    """The command line."""
    with Manxdb(os.environ["MANXDB_TEST_BINARY"]) as server:
        good = [forum(server), shop(server)]
    good.append(sealed(os.environ["MANXDB_TEST_BINARY"]))
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
