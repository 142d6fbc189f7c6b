-- On a standby: the settings are read again.
SELECT pg_reload_conf()
