-- Opens the other tool's ledger again. {ledger} is its table, quoted.
DROP TRIGGER IF EXISTS aegis_migrate_shut ON {ledger}
