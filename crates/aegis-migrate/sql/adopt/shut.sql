-- Shuts the other tool's ledger. {ledger} is its table, quoted.
CREATE OR REPLACE TRIGGER aegis_migrate_shut
    BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {ledger}
    FOR EACH STATEMENT EXECUTE FUNCTION aegis_migrate.refuse_other_runner()
