-- What PostgreSQL 15 added.
SET search_path = app, pg_catalog;
CREATE UNIQUE INDEX orders_nulls ON orders (total) NULLS NOT DISTINCT;
CREATE PUBLICATION zoo_filtered FOR TABLE users (id, email) WHERE (email <> '');
CREATE PUBLICATION zoo_schema FOR TABLES IN SCHEMA "We""ird.Schema";
