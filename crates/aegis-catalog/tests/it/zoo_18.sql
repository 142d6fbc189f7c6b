-- What PostgreSQL 18 added.
SET search_path = app, pg_catalog;
ALTER TABLE orders ADD COLUMN twice numeric GENERATED ALWAYS AS (total * 2) VIRTUAL;
ALTER TABLE orders ADD CONSTRAINT status_set NOT NULL total NOT VALID;
ALTER TABLE orders ADD CONSTRAINT total_any CHECK (total > -1) NOT ENFORCED;
