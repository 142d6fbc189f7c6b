-- The server's version, as a number and as it says it.
SELECT current_setting('server_version_num')::int, current_setting('server_version')
