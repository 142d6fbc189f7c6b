# The watchdog of a private PostgreSQL: runs initdb and postgres as its children and
# ends them when its standard input ends, which happens however the parent ends.
#
# Arguments: temporary|kept, root, socket folder, initdb, postgres, postgres' arguments. In the environment, or
# empty: AEGIS_STANDBY_OF, the URL of the server that new data are copied from; AEGIS_PRELOAD, a library for postgres.
# Standard input: the superuser's password, then lines `stop` (fast), `quit` (immediate),
# `start`; its end is the parent's. Nothing else may hold its other end open.
# Standard output: `initdb`, `running PID`, `ended STATUS`, `failed WHAT`.
# Standard error: for kept data the log, opened and locked by the parent. It is handed down
# to every child, so that the lock is free only when all of them are gone.
#
# Invariants: only root (when temporary) and a socket folder outside of it are ever removed,
# and both are made here, so that no moment exists in which they have no watchdog; the child
# is never left behind; postgres never holds this script's standard input or output.
kind=$1 root=$2 socket=$3 initdb=$4 postgres=$5
shift 5
data=$root/data
umask 077
cd /

say() { echo "$@" 2>/dev/null; }

remove() {
    tries=0
    while [ -e "$1" ] && [ "$tries" -lt 100 ]; do
        rm -rf -- "$1" 2>/dev/null
        [ -e "$1" ] || return
        sleep 0.1
        tries=$((tries + 1))
    done
}

sweep() {
    [ "$kind" = temporary ] && remove "$root"
    case $socket in
    "$root"/*) ;;
    *) remove "$socket" ;;
    esac
}

# Ctrl-C in the terminal is the parent's to judge; a closed pipe must not end us.
trap '' HUP INT QUIT PIPE
want=run
trap 'want=end' TERM
trap 'want=stop' USR1
trap 'want=quit' USR2
trap 'want=start' ALRM
exec 3<&0 </dev/null
read -r password <&3 || exit 0

# The reader turns lines into signals, because a shell cannot wait for a line and a
# child at once. At the end of the input it insists, and does the work alone when the
# main process is gone or deaf (started with SIGTERM ignored).
(
    trap - TERM USR1 USR2 ALRM
    while read -r line; do
        case $line in
        stop) kill -USR1 $$ ;;
        quit) kill -USR2 $$ ;;
        start) kill -ALRM $$ ;;
        esac
    done
    tries=0
    while kill -TERM $$ && [ "$tries" -lt 50 ]; do
        sleep 0.2
        tries=$((tries + 1))
    done
    kill -INT 0
    tries=0
    while [ -e "$data/postmaster.pid" ] && [ "$tries" -lt 100 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    sweep
    kill -KILL 0
) <&3 3<&- >/dev/null 2>&1 &
reader=$!
exec 3<&-

# Sends a signal to the child and sees it gone: what does not obey is killed.
end_child() {
    kill "-$1" "$child" 2>/dev/null
    polls=0
    while kill -0 "$child" 2>/dev/null; do
        sleep 0.05
        polls=$((polls + 1))
        [ "$polls" -eq 300 ] && kill -QUIT "$child" 2>/dev/null
        [ "$polls" -eq 400 ] && kill -KILL "$child" 2>/dev/null
    done
}

# Waits for the child; a signal that asks for its end cuts the wait short. $1: what to
# send when the parent has ended.
await_child() {
    while :; do
        case $want in
        end)
            kill -KILL "$reader" 2>/dev/null
            end_child "$1"
            ;;
        stop) end_child INT ;;
        quit) end_child QUIT ;;
        esac
        wait "$child"
        status=$?
        [ "$status" -le 128 ] && return
        kill -0 "$child" 2>/dev/null || return
    done
}

# Waits for the next order: `start`, or the end of the parent or of the reader.
idle() {
    while [ "$want" != end ] && [ "$want" != start ]; do
        wait "$reader"
        kill -0 "$reader" 2>/dev/null || want=end
    done
}

leave() {
    kill -KILL "$reader" 2>/dev/null
    # What initdb had started is in our group; the postmaster is gone by now.
    trap '' TERM
    kill -TERM 0
    sweep
    exit 0
}

fail() {
    say "failed $1"
    while [ "$want" != end ]; do
        want=failed
        idle
    done
    leave
}

if [ "$kind" = temporary ]; then
    said=$(mkdir -m 700 -- "$root" 2>&1) || fail "$said"
    true 2>/dev/null >"$root/postgres.log" || fail "writing $root/postgres.log"
    exec 2>>"$root/postgres.log"
fi
if [ ! -d "$socket" ]; then
    said=$(mkdir -m 700 -- "$socket" 2>&1) || fail "$said"
fi
# Left by a machine that stopped; the parent has made sure that nobody runs here.
rm -f -- "$socket"/.s.PGSQL.*

if [ ! -e "$data" ]; then
    say initdb
    # Made beside and renamed: a data folder that exists is a complete one.
    rm -rf -- "$root/data.new"
    printf '%s\n' "$password" >"$root/password" || fail "writing $root/password"
    by=initdb
    if [ -n "$AEGIS_STANDBY_OF" ]; then
        by=pg_basebackup
        "${initdb%/*}/pg_basebackup" -D "$root/data.new" -d "$AEGIS_STANDBY_OF" -R -X stream -c fast --no-sync >&2 &
    else
        "$initdb" -D "$root/data.new" -U postgres -E UTF8 --locale=C --no-sync \
            --auth-local=trust --auth-host=scram-sha-256 --pwfile="$root/password" >&2 &
    fi
    child=$!
    await_child KILL
    [ "$want" = end ] && leave
    [ "$status" -eq 0 ] || fail "$by (status $status)"
    mv -- "$root/data.new" "$data" || fail "naming $data"
fi

while [ "$want" != end ]; do
    want=run
    LD_PRELOAD=$AEGIS_PRELOAD "$postgres" -D "$data" "$@" >&2 &
    child=$!
    say "running $child"
    if [ "$kind" = temporary ]; then await_child QUIT; else await_child INT; fi
    [ "$want" = end ] || want=idle
    say "ended $status"
    idle
done
leave
