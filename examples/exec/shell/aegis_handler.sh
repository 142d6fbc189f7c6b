# Speaks the Aegis exec protocol, version 1, for a handler in a POSIX shell. Needs sed; no jq.
#
#   . "$(dirname "$0")/aegis_handler.sh"
#   aegis_start                          # sets $start, the task as JSON
#   if aegis_step measure a.png; then    # true: not done yet; false: done, its value is in $value
#       aegis_save_step measure a.png 42
#   fi
#   aegis_result '"ok"'
#
# What always holds: a reply of Aegis begins with {"type":"reply","id":N,"answer":"WORD", in this order and without spaces, so
# the beginning of a line tells what it is, whatever stands in the data behind it. Standard output belongs to the protocol:
# print for people with >&2.
#
# What it cannot: strings with escapes (quotes, backslashes, control characters) inside of an input. Take a language with a
# JSON library for those.

set -eu

# The message that comes with the signal says why; a shell notices it at its next reply.
trap '' TERM

aegis_id=0
reply='' answer='' value='' operation=''

# Hello, and the task in $start. Ends quietly when the worker only asked whether this is a handler.
aegis_start() {
    IFS= read -r aegis_hello || exit 0
    printf '{"type":"hello","version":1}\n'
    IFS= read -r start || exit 0
}

# A string field of the input: aegis_input path
aegis_input() {
    printf '%s\n' "$start" | sed -n 's/.*"input":{\([^{}]*\)}.*/\1/p' | sed -n 's/^\(.*,\)\{0,1\}"'"$1"'":"\([^"\\]*\)".*/\2/p'
}

# A text as a JSON string: $(aegis_string "$text"). Line ends become spaces.
aegis_string() {
    printf '"%s"' "$(printf '%s' "$1" | tr '\n\t\r' '   ' | sed 's/\\/\\\\/g; s/"/\\"/g')"
}

# Milliseconds since the machine's boot, sleep included, as the worker counts them.
aegis_now_ms() {
    read -r aegis_up aegis_idle < /proc/uptime
    printf '%s0' "${aegis_up%.*}${aegis_up#*.}"
}

# Sends a request (without its type and id) and waits for its reply: sets $reply and $answer.
aegis_ask() {
    aegis_id=$((aegis_id + 1))
    # Before it is sent: what the reply allows is counted from here.
    aegis_asked_ms=$(aegis_now_ms)
    printf '{"type":"%s","id":%s%s}\n' "$1" "$aegis_id" "${2:+,$2}"
    while :; do
        # Without a worker nothing that is done here is accepted any more.
        IFS= read -r reply || exit 1
        case $reply in
        '{"type":"reply","id":'"$aegis_id"',"answer":"'*) break ;;
        # Nothing is charged for what stops because it was asked to.
        '{"type":"cancel",'*) exit 0 ;;
        esac
    done
    answer=${reply#'{"type":"reply","id":'"$aegis_id"',"answer":"'}
    answer=${answer%%\"*}
    if [ "$answer" = error ]; then
        printf 'refused: %s\n' "$reply" >&2
        exit 1
    fi
}

# A field of the last reply that is a string without escapes.
aegis_field() {
    printf '%s\n' "$reply" | sed -n 's/.*"'"$1"'":"\([^"\\]*\)".*/\1/p'
}

# aegis_step NAME KEY: true when it is still to be done; otherwise its value is in $value.
aegis_step() {
    aegis_ask step "\"name\":$(aegis_string "$1"),\"key\":$(aegis_string "$2")"
    [ "$answer" = known ] || return 0
    value=${reply#*'"value":'}
    value=${value%',"valid_for_ms":'*}
    return 1
}

# aegis_save_step NAME KEY JSON
aegis_save_step() {
    aegis_ask save_step "\"name\":$(aegis_string "$1"),\"key\":$(aegis_string "$2"),\"value\":$3"
    value=$3
}

# When the worker's eligibility may have run out meanwhile, nobody is called: it is asked once more.
aegis_in_time() {
    while [ "$answer" = call ]; do
        aegis_valid_ms=${reply##*'"valid_for_ms":'}
        aegis_valid_ms=${aegis_valid_ms%%[!0-9]*}
        [ "$(aegis_now_ms)" -lt $((aegis_asked_ms + aegis_valid_ms)) ] && break
        aegis_ask settle "$aegis_place,\"outcome\":\"not_applied\",\"message\":\"the eligibility may have run out\""
    done
    operation=$(aegis_field operation)
}

# aegis_operation NAME KEY CLASS MORE: sets $answer to call, probe, done, refused, compensated or given_up; for call and probe
# the id that the other side gets is in $operation. MORE is further fields as JSON, or empty.
aegis_operation() {
    aegis_place="\"name\":$(aegis_string "$1"),\"key\":$(aegis_string "$2")"
    aegis_ask operation "$aegis_place,\"class\":\"$3\"${4:+,$4}"
    aegis_in_time
}

# aegis_settle OUTCOME RESULT: after call. Sets $answer again: done, or call once more.
aegis_settle() {
    aegis_ask settle "$aegis_place,\"outcome\":\"$1\"${2:+,\"result\":$2}"
    aegis_in_time
}

# aegis_probed FOUND RESULT: after probe. Sets $answer again: done, or call.
aegis_probed() {
    aegis_ask probed "$aegis_place,\"found\":\"$1\"${2:+,\"result\":$2}"
    aegis_in_time
}

# aegis_log LEVEL TEXT
aegis_log() {
    printf '{"type":"log","level":"%s","message":%s}\n' "$1" "$(aegis_string "$2")"
}

# aegis_result JSON
aegis_result() {
    printf '{"type":"result","value":%s}\n' "$1"
    exit 0
}

# aegis_error CODE MESSAGE RETRYABLE (true or false)
aegis_error() {
    printf '{"type":"error","code":"%s","message":%s,"retryable":%s}\n' "$1" "$(aegis_string "$2")" "$3"
    exit 0
}
