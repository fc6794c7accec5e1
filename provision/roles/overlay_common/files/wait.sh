#!/opt/overlaylab/bin/sh
# Waits until the overlay says that it is healthy, prints its status. Argument: seconds; the rest: peers'
# underlay addresses, to name the cause where it does not get there.
set -u
limit=$1; shift
read -r now _ </proc/uptime
end=$((${now%.*} + limit))
while :; do
    # A status that cannot be read does not become right by waiting.
    status=$(/opt/overlaylab/overlay/overlay-status) || exit 1
    case $status in *'"healthy":true'*) echo "$status"; exit 0 ;; esac
    read -r now _ </proc/uptime
    [ "${now%.*}" -lt "$end" ] || break
    sleep 0.5
done
why=${status#*'"reason":"'}
printf 'not healthy after %s s: %s' "$limit" "${why%%'",'*}" >&2
for peer; do
    ping -n -q -c 1 -W 2 "$peer" >/dev/null 2>&1 || printf '; the peer %s does not answer a ping on the underlay' "$peer" >&2
done
echo >&2
exit 1
