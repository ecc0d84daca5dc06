# Runs one container and sees to its end, outside of it. Standard input is a pipe whose other end only the worker has:
# it closes when the worker wants the end, and when the worker is gone, however that happened.
# Arguments: the engine, the name of the container, then the arguments of the engine.
set -u
engine=$1 name=$2
shift 2
remove() { "$engine" rm --force "$name" > /dev/null 2>&1; }
exec 3<&0 < /dev/null
"$engine" "$@" 3<&- &
client=$!
( read -r _ <&3; remove; sleep 1; kill -KILL "$client" ) > /dev/null 2>&1 &
watcher=$!
wait "$client"
code=$?
kill "$watcher" 2> /dev/null
[ "$code" -lt 125 ] || remove  # also one that was made while it was being ended
exit "$code"
