-- The number of the schema: lines that are done without a gap. Never lowered: a newer release may have brought more. $1 lines.
UPDATE aegis.schema_version SET schema = $1 WHERE schema < $1
