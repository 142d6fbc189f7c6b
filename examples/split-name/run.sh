#!/usr/bin/env bash
# Splits users.name into first_name and last_name while an old and a new program write: docs/guides/split-a-column.md tells each
# step. It needs an empty database that it may fill, PostgreSQL's programs on the PATH, and `aegis`.
#
#   AEGIS_DATABASE_URL=postgresql://… ROWS=10000000 examples/split-name/run.sh
set -euo pipefail
cd "$(dirname "$0")"

: "${AEGIS_DATABASE_URL:?an empty database, such as postgresql://postgres@127.0.0.1:5432/shop}"
export AEGIS_DATABASE_URL
ROWS=${ROWS:-10000000}
WRITES_PER_SECOND=${WRITES_PER_SECOND:-50}
AEGIS=${AEGIS:-aegis}
ask() { psql "$AEGIS_DATABASE_URL" --no-psqlrc --quiet --tuples-only --no-align -v ON_ERROR_STOP=1 -c "$1"; }
say() { printf '\n== %s\n' "$*"; }

# Everything that this makes outside of the database is in here.
work=$(mktemp -d)
programs=()
end() {
    for program in "${programs[@]}"; do kill "$program" 2>/dev/null || true; done
    rm -rf "$work"
}
trap end EXIT
cp -r migrations "$work/migrations"
export AEGIS_MIGRATE_DIR=$work/migrations

# A program of one version: it writes as the role of the application until it is stopped.
start() {
    PGOPTIONS='-c role=split_name_rw' PGAPPNAME="shop-$1" pgbench "$AEGIS_DATABASE_URL" --no-vacuum --file="programs/$1.sql" \
        -D "rows=$ROWS" --client=2 --rate="$WRITES_PER_SECOND" --time=86400 >"$work/$1.log" 2>&1 &
    programs+=($!)
}
stop() {
    kill "$1" 2>/dev/null || { echo "the program had ended by itself:"; cat "$work"/*.log; exit 1; }
    wait "$1" 2>/dev/null || true
}

say "1. The table of today, and its rows"
ask "DO \$\$ BEGIN CREATE ROLE split_name_rw; EXCEPTION WHEN duplicate_object THEN NULL; END \$\$" 
ask "CREATE SCHEMA IF NOT EXISTS app; GRANT USAGE ON SCHEMA app TO split_name_rw"
mv "$AEGIS_MIGRATE_DIR/20261129T1030_split_name" "$work/next"
"$AEGIS" migrate seal
"$AEGIS" migrate run --phase expand
ask "INSERT INTO app.users (name) SELECT 'Ada ' || chr(65 + (n % 26)::int) || '. Lovelace' FROM generate_series(1, $ROWS) n"
ask "ANALYZE app.users"
start old
old=${programs[-1]}

say "2. Expand: the new columns, and a trigger that keeps both sides alike"
mv "$work/next" "$AEGIS_MIGRATE_DIR/20261129T1030_split_name"
"$AEGIS" migrate lint
"$AEGIS" migrate seal
"$AEGIS" migrate plan
"$AEGIS" migrate run --phase expand
start new
new=${programs[-1]}

say "3. Migrate: the rows of before, while both programs write"
"$AEGIS" migrate run --phase migrate
unlike=$(ask "SELECT count(*) FROM app.users
    WHERE (first_name, last_name) IS DISTINCT FROM (split_part(name, ' ', 1), substr(name, length(split_part(name, ' ', 1)) + 2))
      AND name IS DISTINCT FROM concat_ws(' ', first_name, last_name)")
echo "rows in which neither side follows from the other: $unlike"
[ "$unlike" = 0 ]

say "4. Switch: applications are told to read and write the new side"
change=20261129T1030_split_name
"$AEGIS" migrate switch "$change" --reads new --writes new --reason "the new version is everywhere"
stop "$old"

say "5. Contract, weeks later, by its own commit: shut the door and look who knocks"
cat later/contract.toml >>"$AEGIS_MIGRATE_DIR/$change/change.toml"
cp later/contract.sql "$AEGIS_MIGRATE_DIR/$change/"
openssl genpkey -algorithm ed25519 -out "$work/bo.pem" 2>/dev/null
cat >"$AEGIS_MIGRATE_DIR/approvers.toml" <<KEYS
format = 1
environment = "example"
approvals = 1
[[person]]
name = "bo"
may = ["approve"]
key = """
$(openssl pkey -in "$work/bo.pem" -pubout)
"""
KEYS
"$AEGIS" migrate seal
"$AEGIS" migrate contract close "$change"
# Later than the switch: what was counted before new writes counted is no evidence.
"$AEGIS" migrate reconcile "$change"
# Sessions that are older than the shut door may still have the old columns in their plans.
stop "$new"
start new
new=${programs[-1]}
"$AEGIS" migrate contract observe "$change"

say "6. Approved, judged once more, tightened, dropped"
tomorrow=$(date -u -d '+1 day' +%Y-%m-%dT%H:%M:%SZ)
"$AEGIS" migrate contract approve "$change" --key "$work/bo.pem" --file "$work/approval.json" --author ana --not-after "$tomorrow"
"$AEGIS" migrate contract status "$change"
"$AEGIS" migrate contract run "$change" --approval "$work/approval.json"

# The new program never stopped.
stop "$new"
ask "SELECT 'rows: ' || count(*) || ', without a first name: ' || count(*) FILTER (WHERE first_name IS NULL) FROM app.users"
"$AEGIS" migrate verify
