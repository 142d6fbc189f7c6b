-- The first whole run has ended: from now on somebody uses this database.
UPDATE aegis_migrate.ledger SET fresh = false WHERE fresh
