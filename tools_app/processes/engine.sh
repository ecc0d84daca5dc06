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
(
  read -r _ <&3
  # Again until the client has ended: a container that is just being made cannot be removed yet, and a client that is
  # killed then leaves the engine to start it.
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
    remove
    kill -0 "$client" || exit
    sleep 0.3
  done
  kill -KILL "$client"
) > /dev/null 2>&1 &
watcher=$!
wait "$client"
code=$?
kill "$watcher" 2> /dev/null
[ "$code" -lt 125 ] || remove  # also one that was made while it was being ended
exit "$code"
