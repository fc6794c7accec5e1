#!/bin/sh
# An address for an endpoint that does not exist, and back with it.
[ "$ROLE" != other ] || exit 0
answer=$(curl -s --max-time 10 -X POST "http://127.0.0.1:6784/ip/$NODE-trial")
curl -s --max-time 10 -X DELETE "http://127.0.0.1:6784/ip/$NODE-trial" >/dev/null
case $answer in
    [0-9]*.*/*) ;;
    *) echo "weaver hands out no address: ${answer:-no answer}"; exit 1 ;;
esac
