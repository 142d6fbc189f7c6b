#!/bin/sh
# A handler of kind `archive`: measures a file and enters it into a register once, whatever is killed meanwhile.
#
#   aegis worker --kind archive --exec examples/exec/shell/archive.sh
#   aegis task submit archive --input '{"file": "/etc/hostname", "register": "/tmp/register"}' --wait
#
# The register is a file with a line per entry; it stands for any service that can be asked by operation id. So entering is
# `queryable`: when an answer was lost the next attempt asks first, and never enters twice.

. "$(dirname "$0")/aegis_handler.sh"
aegis_start

file=$(aegis_input file)
register=$(aegis_input register)
if [ -z "$file" ] || [ -z "$register" ]; then
    aegis_error input_invalid 'write {"file": "FILE", "register": "FILE"}, without escapes in the names' false
fi

if aegis_step measure "$file"; then
    # Work that touches nothing outside; it is not done again after a crash.
    [ -r "$file" ] || aegis_error no_file "$file cannot be read" false
    aegis_save_step measure "$file" "$(wc -c < "$file" | tr -d ' ')"
fi
bytes=$value

aegis_operation enter "$file" queryable "\"request\":{\"bytes\":$bytes},\"timeout_ms\":2000,\"quiet_ms\":500"
while :; do
    case $answer in
    call)
        # One short line, appended at once: this is the effect.
        printf '%s %s %s\n' "$operation" "$bytes" "$file" >> "$register"
        aegis_settle succeeded '"entered"' ;;
    probe)
        if grep -qF "$operation " "$register" 2>/dev/null; then
            aegis_probed happened '"entered"'
        else
            aegis_probed did_not_happen ''
        fi ;;
    done) break ;;
    *) aegis_error "operation_$answer" "the register did not take it: $reply" false ;;
    esac
done

aegis_log info "entered $file"
aegis_result "{\"bytes\":$bytes}"
