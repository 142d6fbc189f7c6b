-- What holds for a replay, whatever the server's own settings are.
SET timezone = 'UTC';
SET standard_conforming_strings = on;
SET client_min_messages = warning;
SET search_path = pg_catalog
