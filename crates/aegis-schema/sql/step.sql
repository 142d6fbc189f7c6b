-- A line that is done, for releases of before and for the doctor. $1 its number, $2 its name, $3 its hash.
INSERT INTO aegis.schema_step (version, name, checksum) VALUES ($1, $2, $3) ON CONFLICT (version) DO NOTHING
