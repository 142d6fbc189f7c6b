-- What the installer of before has recorded, and what releases of before compare.
SELECT s.version, s.checksum FROM aegis.schema_step s ORDER BY s.version
