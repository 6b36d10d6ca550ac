"""Random queries whose answer is determined."""


class Queries:
    """The part of the generator that asks. Uses its tables, values and conditions."""

    def select(self):
        """One of several forms of query; (sql, ordered)."""
        forms = [self.select_plain, self.select_plain, self.select_join, self.select_group, self.select_aggregate,
                 self.select_set_operation, self.select_derived, self.select_window, self.select_window, self.select_correlated,
                 self.select_common_table, self.select_rollup, self.select_concatenated]
        return self.random.choice(forms)()

    def numeric(self, table):
        """The name of a numeric column."""
        return self.random.choice([column for column in table.columns if column.numeric()]).name

    def select_plain(self):
        """Columns and expressions with WHERE, ORDER BY and LIMIT."""
        random = self.random
        table = random.choice(self.tables)
        what = ", ".join(["x.id"] + [self.scalar(table, "x") for _ in range(random.randint(1, 4))])
        sql = f"SELECT {what} FROM {table.name} x"
        if random.random() < 0.8:
            sql += f" WHERE {self.condition(table, 'x')}"
        if random.random() < 0.5:
            key = random.choice([column for column in table.columns if column.kind != "json"]).name
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

    def select_set_operation(self):
        """UNION, EXCEPT or INTERSECT of numbers, ordered by the result."""
        random = self.random
        left, right = random.choice(self.tables), random.choice(self.tables)
        sql = (f"SELECT x.{self.numeric(left)} AS n FROM {left.name} x WHERE {self.condition(left, 'x', 1)} "
               f"{random.choice(['UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT'])} "
               f"SELECT y.{self.numeric(right)} FROM {right.name} y WHERE {self.condition(right, 'y', 1)}")
        if random.random() < 0.5:
            return f"{sql} ORDER BY n{random.choice([' DESC', ''])} LIMIT {random.randint(1, 9)}", True
        return sql, False

    def select_derived(self):
        """A derived table, or DISTINCT."""
        table = self.random.choice(self.tables)
        number = self.random.choice([c for c in table.columns if c.numeric()]).name
        if self.random.random() < 0.5:
            return f"SELECT DISTINCT x.{number} FROM {table.name} x WHERE {self.condition(table, 'x', 1)}", False
        return (f"SELECT d.k, d.n FROM (SELECT x.{number} AS k, COUNT(*) AS n FROM {table.name} x GROUP BY x.{number}) d "
                f"WHERE d.n >= {self.random.randint(1, 3)}"), False

    def select_window(self):
        """Window functions over a total order."""
        random = self.random
        table = random.choice(self.tables)
        number = self.numeric(table)
        order = f"x.{random.choice([c for c in table.columns if c.kind != 'json']).name}{random.choice(['', ' DESC'])}, x.id"
        over = random.choice(["", f"PARTITION BY x.{self.numeric(table)} "]) + f"ORDER BY {order}"
        frame = random.choice(["", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", " ROWS UNBOUNDED PRECEDING",
                               " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", " ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING"])
        call = random.choice(["ROW_NUMBER()", "RANK()", "DENSE_RANK()", "NTILE(3)", f"LAG(x.{number})", f"LEAD(x.{number}, 2)"])
        framed = random.choice([f"SUM(x.{number})", "COUNT(*)", f"MIN(x.{number})", f"MAX(x.{number})", f"FIRST_VALUE(x.{number})",
                                f"LAST_VALUE(x.{number})", f"NTH_VALUE(x.{number}, 2)", f"AVG(x.{number})"])
        ranged = random.choice([c for c in table.columns if c.numeric() and c.kind != "uns"]).name
        distance = f"ORDER BY x.{ranged} RANGE BETWEEN {random.randint(0, 4)} PRECEDING AND {random.randint(0, 4)} FOLLOWING"
        return (f"SELECT x.id, {call} OVER ({over}), {framed} OVER ({over}{frame}), COUNT(*) OVER ({distance}) "
                f"FROM {table.name} x WHERE {self.condition(table, 'x', 1)}"), False

    def select_correlated(self):
        """Scalar subqueries that look at the outer row."""
        random = self.random
        outer, inner = random.choice(self.tables), random.choice(self.tables)
        what = random.choice(["COUNT(*)", f"MAX(s.{self.numeric(inner)})", f"SUM(s.{self.numeric(inner)})"])
        sub = f"(SELECT {what} FROM {inner.name} s WHERE s.{self.numeric(inner)} {random.choice(['=', '<', '<>'])} x.{self.numeric(outer)})"
        if random.random() < 0.5:
            return f"SELECT x.id, {sub} FROM {outer.name} x WHERE {self.condition(outer, 'x', 1)}", False
        return f"SELECT x.id FROM {outer.name} x WHERE {sub} {random.choice(['>', '=', '<='])} {random.randint(0, 5)} ORDER BY x.id", True

    def select_common_table(self):
        """WITH, sometimes recursive."""
        random = self.random
        table = random.choice(self.tables)
        if random.random() < 0.3:
            return (f"WITH RECURSIVE n AS (SELECT {random.randint(0, 3)} AS i UNION ALL SELECT i + 1 FROM n WHERE i < {random.randint(4, 12)}) "
                    f"SELECT n.i, x.id FROM n LEFT JOIN {table.name} x ON x.{self.numeric(table)} = n.i"), False
        name = self.numeric(table)
        return (f"WITH q AS (SELECT x.{name} AS k, x.id AS i FROM {table.name} x WHERE {self.condition(table, 'x', 1)}) "
                f"SELECT a.k, COUNT(*), MIN(b.i) FROM q a JOIN q b ON a.i >= b.i GROUP BY a.k"), False

    def select_rollup(self):
        """GROUP BY with subtotals."""
        random = self.random
        table = random.choice(self.tables)
        keys = random.sample([f"x.{c.name}" for c in table.columns if c.numeric()] * 2, random.randint(1, 2))
        keys = list(dict.fromkeys(keys))
        return (f"SELECT {', '.join(keys)}, COUNT(*), SUM(x.id) FROM {table.name} x "
                f"WHERE {self.condition(table, 'x', 1)} GROUP BY {', '.join(keys)} WITH ROLLUP"), False

    def select_concatenated(self):
        """GROUP_CONCAT in a determined order, and groups of strings under their collation."""
        random = self.random
        table = random.choice(self.tables)
        number = self.numeric(table)
        words = [column.name for column in table.columns if column.text()]
        if words and random.random() < 0.5:
            word = random.choice(words)
            return (f"SELECT MIN(x.id), COUNT(*), COUNT(DISTINCT x.{word}) FROM {table.name} x GROUP BY x.{word} "
                    f"HAVING COUNT(*) >= {random.randint(1, 2)}"), False
        return (f"SELECT x.{number}, GROUP_CONCAT(x.id ORDER BY x.id {random.choice(['', 'DESC'])} SEPARATOR '{random.choice([',', '; '])}') "
                f"FROM {table.name} x GROUP BY x.{number}"), False
