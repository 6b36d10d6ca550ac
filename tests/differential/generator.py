"""Random schemas, data and statements whose answers MySQL and MariaDB agree on.

Left out on purpose, because the two differ or the answer is not determined: rounding of
fractional seconds, floating-point sums, order without a total ORDER BY, LIMIT without one.
"""

import datetime
from dataclasses import dataclass, field

WORDS = ["", "a", "A", "ab", "abc", "Manx", "manx", "cat", "Cat ", "žluť", "zz", "tail%", "under_score", "🐱"]


@dataclass
class Column:
    """A column; `kind` is int, big, dec, str, bin, date or time."""

    name: str
    kind: str
    null: bool = True
    unique: bool = False

    def ddl(self):
        """Its definition."""
        types = {"int": "INT", "big": "BIGINT", "dec": "DECIMAL(10,2)", "str": "VARCHAR(20)",
                 "bin": "VARCHAR(20) COLLATE utf8mb4_bin", "date": "DATE", "time": "DATETIME"}
        return f"{self.name} {types[self.kind]}{'' if self.null else ' NOT NULL'}{' UNIQUE' if self.unique else ''}"

    def numeric(self):
        """Whether arithmetic makes sense."""
        return self.kind in ("int", "big", "dec")


@dataclass
class Table:
    """A table; the first column is the primary key `id`."""

    name: str
    columns: list
    parent: str | None = None
    indexes: list = field(default_factory=list)


class Generator:
    """Statements from one seeded source of randomness."""

    def __init__(self, random):
        self.random = random
        self.tables = []
        self.in_transaction = False
        self.counter = 0

    def fresh(self, prefix):
        """A name not used before."""
        self.counter += 1
        return f"{prefix}{self.counter}"

    def value(self, kind):
        """A literal, small enough that values meet."""
        random = self.random
        if kind == "int":
            return str(random.randint(-3, 12))
        if kind == "big":
            return str(random.choice([random.randint(-5, 20), 10**12, -(10**12)]))
        if kind == "dec":
            return f"{random.randint(-500, 1500) / 100:.2f}"
        if kind in ("str", "bin"):
            return "'" + random.choice(WORDS) + "'"
        day = datetime.date(2024, 1, 1) + datetime.timedelta(days=random.randint(-40, 70))
        if kind == "date":
            return f"'{day}'"
        return f"'{day} {random.randint(0, 23):02}:{random.choice([0, 30, 59]):02}:00'"

    def cell(self, column):
        """A literal for a column, now and then NULL."""
        if column.null and self.random.random() < 0.2:
            return "NULL"
        return self.value(column.kind)

    # Schema -------------------------------------------------------------------------------

    def create_table(self):
        """CREATE TABLE, sometimes with a foreign key to an earlier table."""
        random = self.random
        columns = [Column("id", "int", null=False)]
        for index in range(random.randint(2, 5)):
            kind = random.choice(["int", "int", "big", "dec", "str", "str", "bin", "date", "time"])
            columns.append(Column(f"c{index}", kind, random.random() < 0.7, random.random() < 0.12))
        table = Table(self.fresh("t"), columns)
        parts = ["id INT NOT NULL PRIMARY KEY"] + [column.ddl() for column in columns[1:]]
        for column in columns[1:]:
            if random.random() < 0.3:
                parts.append(f"KEY k_{column.name} ({column.name})")
        if random.random() < 0.3:
            pair = random.sample([column.name for column in columns], 2)
            parts.append(f"KEY pair ({', '.join(pair)})")
        if self.tables and random.random() < 0.4:
            table.parent = random.choice(self.tables).name
            columns.append(Column("up", "int"))
            action = random.choice(["", " ON DELETE CASCADE", " ON DELETE SET NULL"])
            parts += ["up INT", f"FOREIGN KEY (up) REFERENCES {table.parent} (id){action}"]
        self.tables.append(table)
        return f"CREATE TABLE {table.name} ({', '.join(parts)})"

    def alter(self):
        """A change of a table that has rows."""
        table = self.random.choice(self.tables)
        choice = self.random.randint(0, 3)
        if choice == 0 and len(table.columns) < 9:
            column = Column(self.fresh("n"), self.random.choice(["int", "str", "dec"]), False)
            default = self.value(column.kind)
            table.columns.append(column)
            return f"ALTER TABLE {table.name} ADD COLUMN {column.ddl()} DEFAULT {default}"
        if choice == 1 and len(table.columns) > 4 and table.columns[-1].name.startswith("n"):
            return f"ALTER TABLE {table.name} DROP COLUMN {table.columns.pop().name}"
        if choice == 2 and table.indexes:
            return f"DROP INDEX {table.indexes.pop()} ON {table.name}"
        name = self.fresh("i")
        table.indexes.append(name)
        names = self.random.sample([column.name for column in table.columns[1:]], self.random.randint(1, 2))
        return f"CREATE INDEX {name} ON {table.name} ({', '.join(names)})"

    # Conditions and expressions -----------------------------------------------------------

    def number(self, table, alias, depth=0):
        """A numeric expression over a table's columns."""
        random = self.random
        names = [f"{alias}.{column.name}" for column in table.columns if column.numeric()]
        roll = random.random()
        if depth > 2 or roll < 0.5:
            return random.choice(names)
        if roll < 0.65:
            return self.value("int")
        if roll < 0.85:
            return f"({self.number(table, alias, depth + 1)} {random.choice('+-*')} {self.number(table, alias, depth + 1)})"
        form = random.choice(["ABS({})", "COALESCE({}, 0)", "IFNULL({}, -1)", "SIGN({})",
                              "CASE WHEN {} > 3 THEN 1 ELSE 0 END", "-{}", "IF({} IS NULL, 7, 8)"])
        return form.format(self.number(table, alias, depth + 1))

    def scalar(self, table, alias):
        """Any expression with a determined text form."""
        random = self.random
        column = random.choice(table.columns)
        name = f"{alias}.{column.name}"
        if column.numeric():
            return self.number(table, alias)
        if column.kind in ("str", "bin"):
            form = random.choice(["{}", "UPPER({})", "LENGTH({})", "CHAR_LENGTH({})", "CONCAT({}, '!')", "LEFT({}, 2)",
                                  "REPLACE({}, 'a', 'o')", "NULLIF({}, 'cat')", "COALESCE({}, 'none')", "REVERSE({})",
                                  "SUBSTRING({}, 2, 2)", "TRIM({})", "INSTR({}, 'a')", "HEX({})"])
        elif column.kind == "date":
            form = random.choice(["{}", "YEAR({})", "MONTH({})", "DAYOFWEEK({})", "{} + INTERVAL 1 MONTH", "LAST_DAY({})",
                                  "DATEDIFF({}, '2024-01-15')", "DATE_FORMAT({}, '%d.%m.%y')", "TO_DAYS({})"])
        else:
            form = random.choice(["{}", "DATE({})", "HOUR({})", "{} - INTERVAL 90 MINUTE", "DATE_FORMAT({}, '%H:%i')",
                                  "TIMESTAMPDIFF(DAY, '2024-01-01', {})", "DAYNAME({})"])
        return form.format(name)

    def condition(self, table, alias, depth=0):
        """A boolean over a table's columns."""
        random = self.random
        if depth < 2 and random.random() < 0.35:
            joined = f" {random.choice(['AND', 'OR'])} ".join(self.condition(table, alias, depth + 1) for _ in range(2))
            return f"NOT ({joined})" if random.random() < 0.2 else f"({joined})"
        column = random.choice(table.columns)
        name = f"{alias}.{column.name}"
        literal = lambda: self.value(column.kind)
        roll = random.random()
        if roll < 0.45:
            return f"{name} {random.choice(['=', '<', '>', '<=', '>=', '<>', '<=>'])} {literal()}"
        if roll < 0.55:
            return f"{name} IS {random.choice(['', 'NOT '])}NULL"
        if roll < 0.68:
            values = ", ".join(literal() for _ in range(random.randint(1, 4)))
            return f"{name} {random.choice(['', 'NOT '])}IN ({values})"
        if roll < 0.8:
            return f"{name} {random.choice(['', 'NOT '])}BETWEEN {literal()} AND {literal()}"
        if column.kind in ("str", "bin"):
            pattern = random.choice(["a%", "%a%", "_a%", "%\\\\_%", "m__x", "%", "C%"])
            return f"{name} LIKE '{pattern}'"
        if roll < 0.9 and depth == 0:
            other = random.choice(self.tables)
            inner = random.choice([c for c in other.columns if c.numeric()])
            if random.random() < 0.5:
                return f"{alias}.id {random.choice(['', 'NOT '])}IN (SELECT s.{inner.name} FROM {other.name} s WHERE s.{inner.name} IS NOT NULL)"
            return f"EXISTS (SELECT 1 FROM {other.name} s WHERE s.{inner.name} = {alias}.id)"
        return f"{self.number(table, alias)} > {self.value('int')}"

    # Statements ---------------------------------------------------------------------------

    def select(self):
        """One of several forms of query; (sql, ordered)."""
        form = self.random.choice([self.select_plain, self.select_plain, self.select_join, self.select_group,
                                   self.select_aggregate, self.select_union, self.select_derived])
        return form()

    def select_plain(self):
        """Columns and expressions with WHERE, ORDER BY and LIMIT."""
        random = self.random
        table = random.choice(self.tables)
        what = ", ".join(["x.id"] + [self.scalar(table, "x") for _ in range(random.randint(1, 4))])
        sql = f"SELECT {what} FROM {table.name} x"
        if random.random() < 0.8:
            sql += f" WHERE {self.condition(table, 'x')}"
        if random.random() < 0.5:
            key = random.choice(table.columns).name
            sql += f" ORDER BY x.{key}{random.choice([' DESC', ''])}, x.id{random.choice([' DESC', ''])}"
            if random.random() < 0.5:
                sql += f" LIMIT {random.randint(0, 6)}" + (f" OFFSET {random.randint(0, 4)}" if random.random() < 0.4 else "")
            return sql, True
        return sql, False

    def select_join(self):
        """Two or three tables."""
        random = self.random
        left, right = random.choice(self.tables), random.choice(self.tables)
        kind = random.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN"])
        key = random.choice([column for column in right.columns if column.numeric()])
        on = f"a.{random.choice([c for c in left.columns if c.kind == 'int']).name} = b.{key.name}"
        if random.random() < 0.3:
            on += f" AND {self.condition(right, 'b', 2)}"
        sql = f"SELECT a.id, b.id, {self.scalar(left, 'a')}, {self.scalar(right, 'b')} FROM {left.name} a {kind} {right.name} b ON {on}"
        if random.random() < 0.3:
            third = random.choice(self.tables)
            sql += f" LEFT JOIN {third.name} c ON c.id = b.id"
        if random.random() < 0.6:
            sql += f" WHERE {self.condition(left, 'a', 1)}"
        return sql, False

    def select_group(self):
        """GROUP BY one or two columns with aggregates."""
        random = self.random
        table = random.choice(self.tables)
        keys = random.sample([c for c in table.columns if c.kind not in ("str", "bin")] or table.columns[:1], 1)
        names = ", ".join(f"x.{key.name}" for key in keys)
        number = random.choice([c for c in table.columns if c.numeric()]).name
        sql = (f"SELECT {names}, COUNT(*), SUM(x.{number}), MIN(x.{number}), MAX(x.{number}), COUNT(DISTINCT x.{number}), "
               f"AVG(x.{number}) FROM {table.name} x WHERE {self.condition(table, 'x', 1)} GROUP BY {names}")
        if random.random() < 0.4:
            sql += f" HAVING COUNT(*) {random.choice(['>', '<', '='])} {random.randint(1, 3)}"
        return sql, False

    def select_aggregate(self):
        """Aggregates over all rows."""
        table = self.random.choice(self.tables)
        column = self.random.choice(table.columns).name
        return (f"SELECT COUNT(*), COUNT(x.{column}), COUNT(DISTINCT x.{column}), SUM({self.number(table, 'x')}) "
                f"FROM {table.name} x WHERE {self.condition(table, 'x')}"), False

    def select_union(self):
        """UNION of ids."""
        left, right = self.random.choice(self.tables), self.random.choice(self.tables)
        return (f"SELECT x.id FROM {left.name} x WHERE {self.condition(left, 'x', 1)} UNION"
                f"{self.random.choice([' ALL', ''])} SELECT y.id FROM {right.name} y WHERE {self.condition(right, 'y', 1)}"), False

    def select_derived(self):
        """A derived table, or DISTINCT."""
        table = self.random.choice(self.tables)
        number = self.random.choice([c for c in table.columns if c.numeric()]).name
        if self.random.random() < 0.5:
            return f"SELECT DISTINCT x.{number} FROM {table.name} x WHERE {self.condition(table, 'x', 1)}", False
        return (f"SELECT d.k, d.n FROM (SELECT x.{number} AS k, COUNT(*) AS n FROM {table.name} x GROUP BY x.{number}) d "
                f"WHERE d.n >= {self.random.randint(1, 3)}"), False

    def insert(self):
        """INSERT, IGNORE, REPLACE, ON DUPLICATE KEY UPDATE, INSERT … SELECT."""
        random = self.random
        table = random.choice(self.tables)
        names = ", ".join(column.name for column in table.columns)
        word = random.choice(["INSERT", "INSERT", "INSERT", "INSERT IGNORE", "REPLACE"])
        rows = []
        for _ in range(random.choice([1, 1, 2, 4])):
            rows.append("(" + ", ".join([str(random.randint(-2, 30))] + [self.cell(column) for column in table.columns[1:]]) + ")")
        sql = f"{word} INTO {table.name} ({names}) VALUES {', '.join(rows)}"
        plain = [column for column in table.columns[1:] if not column.unique and column.name != "up"]
        if word == "INSERT" and plain and random.random() < 0.3:
            column = random.choice(plain)
            change = f"VALUES({column.name})" if random.random() < 0.5 or not column.numeric() else f"{table.name}.{column.name} + 1"
            sql += f" ON DUPLICATE KEY UPDATE {column.name} = {change}"
        return sql

    def update(self):
        """UPDATE, in the order of the key so that its outcome is determined."""
        random = self.random
        table = random.choice(self.tables)
        column = random.choice(table.columns[1:])
        if column.kind == "int" and random.random() < 0.5:
            change = f"{column.name} + {random.randint(1, 3)}"
        else:
            change = self.cell(column)
        sql = f"UPDATE {table.name} SET {column.name} = {change} WHERE {self.condition(table, table.name, 1)} ORDER BY id"
        return sql + (f" LIMIT {random.randint(1, 4)}" if random.random() < 0.3 else "")

    def delete(self):
        """DELETE of some rows."""
        table = self.random.choice(self.tables)
        sql = f"DELETE FROM {table.name} WHERE {self.condition(table, table.name, 1)} ORDER BY id"
        return sql + f" LIMIT {self.random.randint(1, 5)}"

    def transaction(self):
        """A step of transaction control."""
        if not self.in_transaction:
            self.in_transaction = True
            return "BEGIN"
        choice = self.random.random()
        if choice < 0.3:
            return "SAVEPOINT s1"
        if choice < 0.5:
            return "ROLLBACK TO SAVEPOINT s1"
        self.in_transaction = False
        return "COMMIT" if choice < 0.8 else "ROLLBACK"

    def statement(self):
        """The next statement; (sql, ordered)."""
        if len(self.tables) < 2:
            return self.create_table(), False
        roll = self.random.random()
        if roll < 0.45:
            return self.select()
        if roll < 0.70:
            return self.insert(), False
        if roll < 0.82:
            return self.update(), False
        if roll < 0.88:
            return self.delete(), False
        if roll < 0.96:
            return self.transaction(), False
        self.in_transaction = False
        if len(self.tables) < 4 and self.random.random() < 0.4:
            return self.create_table(), False
        return self.alter(), False

    def script(self, length):
        """A list of (sql, ordered): tables, rows, then anything."""
        statements = [(self.create_table(), False) for _ in range(2)]
        statements += [(self.insert(), False) for _ in range(8)]
        while len(statements) < length:
            statements.append(self.statement())
        return statements
