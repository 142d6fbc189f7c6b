-- Whether a person has marked this database as a developer's.
SELECT l.dev FROM aegis_migrate.ledger l
