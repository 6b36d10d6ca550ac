ALTER TABLE shelf MODIFY label VARCHAR(60) NOT NULL, ADD COLUMN room INT, ADD INDEX shelf_room (room);
CREATE VIEW labels AS SELECT label FROM shelf;
