-- The settings of a runner's session. lock_timeout and statement_timeout are set per step, in its transaction.
SET client_connection_check_interval = '500ms';
SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; SET tcp_user_timeout = '20s';
SET idle_in_transaction_session_timeout = '60s';
SET lock_timeout = 0; SET statement_timeout = 0;
SET search_path = pg_catalog, pg_temp;
SET timezone = 'UTC'; SET datestyle = 'ISO, YMD'; SET intervalstyle = 'postgres';
SET standard_conforming_strings = on; SET check_function_bodies = on; SET row_security = on;
SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = off;
