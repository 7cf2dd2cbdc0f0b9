-- name: standing
SELECT current_setting('server_version_num')::integer AS version,
       current_setting('server_encoding') AS encoding,
       current_user AS role,
       current_database() AS database,
       n.oid IS NOT NULL AS exists,
       n.oid IS NOT NULL AND has_schema_privilege(n.oid, 'USAGE') AS may_use,
       n.oid IS NOT NULL AND has_schema_privilege(n.oid, 'CREATE') AS may_create,
       has_database_privilege(current_database(), 'CREATE') AS may_create_schema,
       EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'v', 'p'))
         AS filled,
       EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = n.oid AND c.relname = 'migration')
         AS migrated
FROM (SELECT) AS here
LEFT JOIN pg_namespace n ON n.nspname = $1

-- name: migrations
SELECT number, oldest_writer FROM {schema}.migration ORDER BY number

-- name: create_schema
CREATE SCHEMA {schema}

-- name: create_migration
CREATE TABLE {schema}.migration (
  number integer PRIMARY KEY,
  name text NOT NULL,
  oldest_writer integer NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
)

-- name: add_migration
INSERT INTO {schema}.migration (number, name, oldest_writer) VALUES ($1, $2, $3)

-- name: lock_schema
SELECT pg_advisory_xact_lock(hashtextextended('evenkeel:' || $1, 0))

-- name: begin_meta
INSERT INTO {schema}.meta (name, value)
VALUES ('born', gen_random_uuid()::text),
       ('since', extract(epoch FROM clock_timestamp())::text),
       ('written_at', '0')

-- name: lacking
SELECT c.relname AS relation, p.privilege
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = $1
CROSS JOIN unnest($2::text[]) AS p (privilege)
WHERE c.relkind = 'r' AND NOT has_table_privilege(c.oid, p.privilege)
  AND NOT (c.relname = 'migration' AND p.privilege <> 'SELECT')
ORDER BY c.relname, p.privilege
LIMIT 1
