"""Random schemas, data and statements whose answers MySQL and MariaDB agree on.

Left out on purpose, because the two differ or the answer is not determined: rounding of
fractional seconds, floating-point sums, order without a total ORDER BY, LIMIT without one.
"""

import datetime
from dataclasses import dataclass, field

from queries import Queries
from writes import Writes

WORDS = ["", "a", "A", "ab", "abc", "Manx", "manx", "cat", "Cat ", "žluť", "zz", "tail%", "under_score", "🐱"]


@dataclass
class Column:
    """A column; `kind` is int, tiny, uns, big, dec, str, bin, set, bit, date, time or json."""

    name: str
    kind: str
    null: bool = True
    unique: bool = False
    # What computes it, with VIRTUAL or STORED; None for a column that is given its values.
    generated: str | None = None

    def ddl(self):
        """Its definition."""
        types = {"int": "INT", "tiny": "TINYINT", "uns": "INT UNSIGNED", "big": "BIGINT", "dec": "DECIMAL(10,2)",
                 "str": "VARCHAR(20)", "bin": "VARCHAR(20) COLLATE utf8mb4_bin", "date": "DATE", "time": "DATETIME",
                 "json": "JSON", "set": "SET('a','ab','manx','zz')", "bit": "BIT(6)"}
        computed = f" GENERATED ALWAYS AS {self.generated}" if self.generated else ""
        null = "" if self.null else " NOT NULL"
        return f"{self.name} {types[self.kind]}{computed}{null}{' UNIQUE' if self.unique else ''}"

    def numeric(self):
        """Whether arithmetic makes sense."""
        return self.kind in ("int", "tiny", "uns", "big", "dec")

    def text(self):
        """Whether it holds character strings."""
        return self.kind in ("str", "bin")


@dataclass
class Table:
    """A table; the first column is the primary key `id`."""

    name: str
    columns: list
    parent: str | None = None
    indexes: list = field(default_factory=list)
    checked: bool = False

    def given(self):
        """The columns a statement may give values to."""
        return [column for column in self.columns if not column.generated]


class Generator(Queries, Writes):
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
        if kind == "tiny":
            return str(random.choice([random.randint(-5, 12), random.randint(-5, 12), 127, -128, 200]))
        if kind == "uns":
            return str(random.choice([random.randint(0, 12), random.randint(0, 12), 4294967295, -1]))
        if kind == "dec":
            return f"{random.randint(-500, 1500) / 100:.2f}"
        if kind in ("str", "bin"):
            return "'" + random.choice(WORDS) + "'"
        if kind == "set":
            return random.choice(["''", "'a'", "'zz,a'", "'ab'", "'A,MANX'", "5", "15", "0"])
        if kind == "bit":
            return random.choice(["b'101'", "0", "1", "5", "b'111111'", "0x0C"])
        if kind == "json":
            return random.choice(["'{\"a\": 1, \"b\": [1, 2]}'", "'[1, 2, 3]'", "'{\"a\": \"x\"}'", "'\"text\"'", "'7'", "'{}'", "'[]'"])
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
            kind = random.choice(["int", "int", "tiny", "uns", "big", "dec", "str", "str", "bin", "set", "bit", "date", "time", "json"])
            columns.append(Column(f"c{index}", kind, kind == "json" or random.random() < 0.7, kind != "json" and random.random() < 0.12))
        if random.random() < 0.4:
            columns.append(self.generated_column(columns[1:]))
        table = Table(self.fresh("t"), columns)
        parts = ["id INT NOT NULL PRIMARY KEY"] + [column.ddl() for column in columns[1:]]
        for column in columns[1:]:
            if column.kind != "json" and random.random() < 0.3:
                parts.append(f"KEY k_{column.name} ({column.name})")
        keys = [column.name for column in columns if column.kind != "json"]
        if len(keys) > 1 and random.random() < 0.3:
            parts.append(f"KEY pair ({', '.join(random.sample(keys, 2))})")
        checked = random.choice(columns)
        if checked.kind == "int" and random.random() < 0.3:
            table.checked = True
            parts.append(f"CONSTRAINT small_{table.name} CHECK ({checked.name} < 25)")
        if self.tables and random.random() < 0.4:
            table.parent = random.choice(self.tables).name
            columns.append(Column("up", "int"))
            action = random.choice(["", " ON DELETE CASCADE", " ON DELETE SET NULL"])
            parts += ["up INT", f"FOREIGN KEY (up) REFERENCES {table.parent} (id){action}"]
        self.tables.append(table)
        return f"CREATE TABLE {table.name} ({', '.join(parts)})"

    def generated_column(self, others):
        """A column computed from one of the others, in a way both servers compute alike."""
        random = self.random
        base = random.choice(others)
        name = base.name
        if base.kind == "dec":
            kind, expression = random.choice([("dec", f"{name} - 1"), ("int", f"{name} > 5")])
        elif base.numeric():
            kind, expression = random.choice([
                ("big", f"{name} + 1"), ("big", f"COALESCE({name}, 1) * 2"), ("int", f"{name} IS NULL"),
                ("str", f"CONCAT('<', {name}, '>')"), ("big", f"CASE WHEN {name} > 3 THEN {name} ELSE NULL END")])
        elif base.text():
            kind, expression = random.choice([
                (base.kind, f"UPPER({name})"), ("int", f"CHAR_LENGTH({name})"), (base.kind, f"SUBSTR({name}, 2)"),
                ("int", f"{name} LIKE 'a%'")])
        elif base.kind == "json":
            kind, expression = random.choice([("int", f"JSON_LENGTH({name})"), ("str", f"JSON_TYPE({name})")])
        elif base.kind == "set":
            kind, expression = random.choice([("int", f"FIND_IN_SET('zz', {name})"), ("big", f"{name} + 0"), ("str", f"CONCAT({name}, '!')")])
        elif base.kind == "bit":
            kind, expression = random.choice([("big", f"{name} + 1"), ("str", f"HEX({name})")])
        else:
            kind, expression = random.choice([("int", f"YEAR({name})"), ("date", f"DATE({name})"),
                                              ("int", f"{name} > '2024-01-10'")])
        # What a cascade writes cannot be what a STORED column is computed from.
        how = "VIRTUAL" if name == "up" else random.choice(["VIRTUAL", "STORED"])
        return Column(self.fresh("g"), kind, unique=random.random() < 0.1, generated=f"({expression}) {how}")

    def alter(self):
        """A change of a table that has rows."""
        table = self.random.choice(self.tables)
        choice = self.random.randint(0, 4)
        if choice == 4 and len(table.columns) < 9:
            column = self.generated_column([other for other in table.given()[1:] if not other.name.startswith("n")])
            column.unique = False
            # MariaDB counts the rows it copies for a STORED one as affected; ManxDB's count is 0.
            column.generated = column.generated.replace("STORED", "VIRTUAL")
            table.columns.append(column)
            return f"ALTER TABLE {table.name} ADD COLUMN {column.ddl()}"
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
        names = [column.name for column in table.columns[1:] if column.kind != "json"] or ["id"]
        names = self.random.sample(names, min(len(names), self.random.randint(1, 2)))
        return f"CREATE INDEX {name} ON {table.name} ({', '.join(names)})"

    # Conditions and expressions -----------------------------------------------------------

    def number(self, table, alias, depth=0):
        """A numeric expression over a table's columns."""
        random = self.random
        # Differences of unsigned columns fail or not by the order of evaluation, too.
        names = [f"{alias}.{column.name}" for column in table.columns if column.numeric() and column.kind != "uns"]
        roll = random.random()
        if depth > 2 or roll < 0.5:
            return random.choice(names)
        if roll < 0.65:
            return self.value("int")
        if roll < 0.85:
            # Products of large columns would overflow in one order of evaluation and not in another.
            left = self.number(table, alias, depth + 1)
            if random.random() < 0.3:
                return f"({left} * {self.value('int')})"
            return f"({left} {random.choice('+-')} {self.number(table, alias, depth + 1)})"
        form = random.choice(["ABS({})", "COALESCE({}, 0)", "IFNULL({}, -1)", "SIGN({})",
                              "CASE WHEN {} > 3 THEN 1 ELSE 0 END", "-{}", "IF({} IS NULL, 7, 8)"])
        return form.format(self.number(table, alias, depth + 1))

    def scalar(self, table, alias):
        """Any expression with a determined text form."""
        random = self.random
        column = random.choice(table.columns)
        name = f"{alias}.{column.name}"
        if column.kind == "uns":
            return random.choice(["{}", "COALESCE({}, 7)", "{} + 1", "{} * 2", "{} / 4", "{} DIV 3", "{} % 5", "CAST({} AS SIGNED) - 9"]).format(name)
        if column.numeric():
            return self.number(table, alias)
        if column.kind == "json":
            form = random.choice(["JSON_EXTRACT({}, '$.a')", "JSON_LENGTH({})", "JSON_TYPE({})", "JSON_UNQUOTE(JSON_EXTRACT({}, '$[1]'))",
                                  "JSON_CONTAINS({}, '1')", "JSON_KEYS({})", "JSON_DEPTH({})", "JSON_VALID({})"])
        elif column.text():
            form = random.choice(["{}", "UPPER({})", "LENGTH({})", "CHAR_LENGTH({})", "CONCAT({}, '!')", "LEFT({}, 2)",
                                  "REPLACE({}, 'a', 'o')", "NULLIF({}, 'cat')", "COALESCE({}, 'none')", "REVERSE({})",
                                  "SUBSTRING({}, 2, 2)", "TRIM({})", "INSTR({}, 'a')", "HEX({})", "LPAD({}, 6, '*')",
                                  "CASE {} WHEN 'a' THEN 1 WHEN 'Manx' THEN 2 END", "FIELD({}, 'cat', 'manx')", "STRCMP({}, 'b')",
                                  "{} = 'MANX'", "{} COLLATE utf8mb4_bin = 'manx'", "SUBSTRING_INDEX({}, 'a', 1)", "LOCATE('b', {})"])
        elif column.kind == "set":
            form = random.choice(["{}", "{} + 0", "FIND_IN_SET('ab', {})", "{} & 5", "CONCAT({}, '!')", "{} = 'a,ab'", "{} > 2",
                                  "{} LIKE '%a%'", "COALESCE({}, 'none')", "LENGTH({})", "{} IN ('a', 3)", "IF({}, 'some', 'none')"])
        elif column.kind == "bit":
            form = random.choice(["{}", "{} + 0", "HEX({})", "BIN({})", "{} & 6", "LENGTH({})", "CONCAT({}, 'b')", "{} = 5",
                                  "IF({}, 1, 0)", "COALESCE({}, 7) + 0", "CAST({} AS UNSIGNED)", "{} IN (b'101', 1)"])
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
        column = random.choice([column for column in table.columns if column.kind != "json"])
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
        # MariaDB takes BETWEEN of constants equal under the connection's collation for an equality.
        if roll < 0.8 and column.kind not in ("bin", "set"):
            return f"{name} {random.choice(['', 'NOT '])}BETWEEN {literal()} AND {literal()}"
        if column.kind in ("str", "bin"):
            pattern = random.choice(["a%", "%a%", "_a%", "%\\\\_%", "m__x", "%", "C%"])
            return f"{name} LIKE '{pattern}'"
        if roll < 0.9 and depth == 0:
            other = random.choice(self.tables)
            inner = random.choice([c for c in other.columns if c.numeric()])
            if random.random() < 0.5:
                return f"{alias}.id {random.choice(['', 'NOT '])}IN (SELECT s.{inner.name} FROM {other.name} s WHERE s.{inner.name} IS NOT NULL)"
            if random.random() < 0.3:
                own = random.choice([c for c in table.columns if c.numeric()]).name
                return f"{alias}.{own} {random.choice(['<', '>=', '='])} {random.choice(['ANY', 'ALL'])} (SELECT s.{inner.name} FROM {other.name} s WHERE s.id > {alias}.id)"
            return f"EXISTS (SELECT 1 FROM {other.name} s WHERE s.{inner.name} = {alias}.id)"
        return f"{self.number(table, alias)} > {self.value('int')}"

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
