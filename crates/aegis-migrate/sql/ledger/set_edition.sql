-- Says which edition was made, in the transaction that made it. $1 its number, written in by the program.
INSERT INTO aegis_migrate.edition AS e (number) VALUES ($1)
ON CONFLICT (one) DO UPDATE SET number = excluded.number, made_at = clock_timestamp();
