-- Whether a table of this tool is there. $1 its name, quoted and with its schema.
SELECT to_regclass($1) IS NOT NULL
