-- From now on this database is a developer's: what is in the schemas of the changes may be dropped.
UPDATE aegis_migrate.ledger SET dev = true
