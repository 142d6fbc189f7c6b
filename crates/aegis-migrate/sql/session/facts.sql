-- What a session is: one row. Read in the first statement after the startup.
SELECT pg_backend_pid() AS pid, pg_is_in_recovery() AS standby, current_setting('default_transaction_read_only') AS read_only,
    current_database()::text AS database, current_user::text AS role, session_user::text AS login,
    current_setting('server_version_num')::int AS version_num, current_setting('server_version') AS version
