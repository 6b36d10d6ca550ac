"""Random changes whose outcome is determined."""


class Writes:
    """The part of the generator that changes rows. Uses its tables, values and conditions."""

    def insert(self):
        """INSERT, IGNORE, REPLACE, ON DUPLICATE KEY UPDATE, INSERT … SELECT."""
        random = self.random
        table = random.choice(self.tables)
        given = table.given()
        names = ", ".join(column.name for column in given)
        word = random.choice(["INSERT", "INSERT", "INSERT", "INSERT IGNORE", "REPLACE"])
        if table.checked and word == "INSERT IGNORE":
            word = "INSERT"  # MySQL skips a row that fails a CHECK, MariaDB refuses the statement.
        if random.random() < 0.2:
            return self.insert_select(word, table)
        rows = []
        for _ in range(random.choice([1, 1, 2, 4])):
            rows.append("(" + ", ".join([str(random.randint(-2, 30))] + [self.cell(column) for column in given[1:]]) + ")")
        sql = f"{word} INTO {table.name} ({names}) VALUES {', '.join(rows)}"
        plain = [column for column in given[1:] if not column.unique and column.name != "up"]
        if word == "INSERT" and plain and random.random() < 0.3:
            column = random.choice(plain)
            change = f"VALUES({column.name})" if random.random() < 0.5 or not column.numeric() else f"{table.name}.{column.name} + 1"
            sql += f" ON DUPLICATE KEY UPDATE {column.name} = {change}"
        return sql

    def update(self):
        """UPDATE, in the order of the key so that its outcome is determined."""
        random = self.random
        if random.random() < 0.3:
            return self.update_join()
        table = random.choice(self.tables)
        column = random.choice(table.given()[1:])
        if column.kind == "int" and random.random() < 0.5:
            change = f"{column.name} + {random.randint(1, 3)}"
        else:
            change = self.cell(column)
        sql = f"UPDATE {table.name} SET {column.name} = {change} WHERE {self.condition(table, table.name, 1)} ORDER BY id"
        return sql + (f" LIMIT {random.randint(1, 4)}" if random.random() < 0.3 else "")

    def delete(self):
        """DELETE of some rows."""
        if self.random.random() < 0.3:
            return self.delete_join()
        table = self.random.choice(self.tables)
        sql = f"DELETE FROM {table.name} WHERE {self.condition(table, table.name, 1)} ORDER BY id"
        return sql + f" LIMIT {self.random.randint(1, 5)}"

    def insert_select(self, word, table):
        """INSERT … SELECT of the columns both tables have, with new keys."""
        random = self.random
        source = random.choice(self.tables)
        pairs = []
        for column in table.given()[1:]:
            same = [other for other in source.columns if other.kind == column.kind]
            if same:
                pairs.append((column.name, f"s.{random.choice(same).name}"))
            elif not column.null:
                pairs.append((column.name, self.value(column.kind)))
        names = ", ".join(["id"] + [name for name, _ in pairs])
        values = ", ".join([f"s.id + {random.randint(1, 40)}"] + [value for _, value in pairs])
        return (f"{word} INTO {table.name} ({names}) SELECT {values} FROM {source.name} s "
                f"WHERE {self.condition(source, 's', 1)} ORDER BY s.id")

    def update_join(self):
        """UPDATE of a table joined with another by its key: a row meets one row at most."""
        random = self.random
        table, other = random.choice(self.tables), random.choice(self.tables)
        column = random.choice(table.given()[1:])
        same = [c for c in other.columns if c.kind == column.kind]
        value = f"b.{random.choice(same).name}" if same else self.cell(column)
        key = random.choice([c for c in table.columns if c.kind == "int"]).name
        return (f"UPDATE {table.name} a {random.choice(['JOIN', 'LEFT JOIN'])} {other.name} b ON a.{key} = b.id "
                f"SET a.{column.name} = {value} WHERE {self.condition(table, 'a', 1)}")

    def delete_join(self):
        """DELETE from a table joined with another, or where a subquery says so."""
        random = self.random
        table, other = random.choice(self.tables), random.choice(self.tables)
        if random.random() < 0.4 and other is not table:
            return (f"DELETE FROM {table.name} WHERE id IN (SELECT s.{self.numeric(other)} FROM {other.name} s "
                    f"WHERE {self.condition(other, 's', 2)})")
        return (f"DELETE a FROM {table.name} a JOIN {other.name} b ON a.{self.numeric(table)} = b.{self.numeric(other)} "
                f"WHERE {self.condition(other, 'b', 1)} AND a.id > {random.randint(0, 20)}")
