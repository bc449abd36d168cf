#!/bin/sh
# Stands in for `uv run` inside a virtual environment: drops uv's own options and runs that environment's python.
# The server reads its parent's command line, so python must be a child of this script, not take its place.
while :; do
    case "$1" in
        run|--isolated|--frozen|--no-sync|--no-project) shift ;;
        --extra|--with|--python) shift 2 ;;
        *) break ;;
    esac
done
"$(dirname "$0")/python" "$@" &
child=$!
trap 'kill -TERM $child 2>/dev/null' TERM INT
wait $child
code=$?
trap - TERM INT
wait $child 2>/dev/null
exit $code
