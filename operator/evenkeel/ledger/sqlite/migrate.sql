-- name: tables
SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'

-- name: make_migration
CREATE TABLE migration (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  oldest_writer INTEGER NOT NULL,
  at REAL NOT NULL
) STRICT

-- name: applied
SELECT number, name, oldest_writer FROM migration ORDER BY number

-- name: note_migration
INSERT INTO migration (number, name, oldest_writer, at)
VALUES (:number, :name, :oldest_writer, :at)

-- name: begin_meta
INSERT OR IGNORE INTO meta (only_one, born, since) VALUES (1, lower(hex(randomblob(16))), :at)
