#!/bin/sh
# The complaint is about one address; the next endpoint of that node gets another one.
[ "$ROLE" = client ] || exit 0
for host in 3 40 100; do
    case $(ip -4 route get "${PEER_ENDPOINT%.*}.$host" 2>&1) in
        *' dev br-'* | *unreachable*) echo "other addresses of the second node's subnet still go elsewhere"; exit 1 ;;
    esac
done
