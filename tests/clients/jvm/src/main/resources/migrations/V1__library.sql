-- Two statements and a quoted semicolon.
CREATE TABLE shelf (
  id INT NOT NULL AUTO_INCREMENT,
  label VARCHAR(30) NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY shelf_label (label)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
INSERT INTO shelf (label) VALUES ('a;b'), ('it''s');
