# The one package that ./task may need before its toolchain is there. machine/packages.py and machine/apt.py install all
# others: the options of apt-get and the order are the same there (test_front_door.py holds them together).
# shellcheck shell=sh disable=SC2154  # sourced by ./task, which has $user, fail and apt_get

apt_wait=300 # seconds
apt_locks='/var/lib/dpkg/lock-frontend /var/lib/dpkg/lock /var/lib/apt/lists/lock /var/cache/apt/archives/lock'

say() { printf 'overlaylab: %s\n' "$*" >&2; }

# Sets $sudo, what stands before apt-get. $1: the package that this is about.
reach_root() {
    # NEEDRESTART_MODE=l: Ubuntu's needrestart lists services instead of restarting them under the operator.
    # LC_ALL: what went wrong is known by apt's and dpkg's English words.
    sudo='env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l LC_ALL=C.UTF-8'
    [ "$(id -u)" != 0 ] || return 0
    by_root="have root type: apt-get update && apt-get install --no-install-recommends $1"
    command -v sudo >/dev/null ||
        fail "package $1: must be installed by root, and there is no sudo (found: user $user). Install sudo and let $user use it, or $by_root; then type the command again"
    if [ -t 0 ]; then
        sudo="sudo $sudo"
        return
    fi
    said=$(sudo -n true 2>&1) ||
        fail "sudo: must not need a password where no terminal can ask for it (found: $said). Type the command in a terminal once, or $by_root; then type it again"
    sudo="sudo -n $sudo"
}

# Who holds a lock of dpkg or apt, "apt-get, process 123". /proc/locks tells anybody; opening the files takes root.
apt_holder() {
    # In one piece: between two reads the kernel counts again from the first, and where one ended, leaves one out.
    locks=$(cat /proc/locks)
    for file in $apt_locks; do
        inode=$(stat -c %i "$file" 2>/dev/null) || continue
        while read -r _ kind _ _ holder at _; do
            if [ "$kind" = POSIX ] && [ "${at##*:}" = "$inode" ]; then
                name=$(cat "/proc/$holder/comm" 2>/dev/null) || name='a program'
                echo "$name, process $holder"
                return
            fi
        done <<LOCKS
$locks
LOCKS
    done
}

# apt-get waits for dpkg's lock by itself, silently, and for that of the lists not at all.
wait_for_apt() {
    waited=0
    while holder=$(apt_holder) && [ -n "$holder" ]; do
        [ "$waited" != 0 ] || say "packages are being installed by $holder: waiting for it, $apt_wait s at most"
        [ "$waited" -lt "$apt_wait" ] ||
            fail "apt: must not be in use by another program (found: $holder, for $apt_wait s). Wait until that ends, then type the command again; nothing was changed"
        sleep 1
        waited=$((waited + 1))
    done
}

# What apt-get complained about, else all that it said, on one line.
apt_complaints() {
    complaints=$(printf '%s\n' "$1" | grep -E '^(E: |W: |dpkg: error)' | tail -n 6)
    printf '%s\n' "${complaints:-$1}" | paste -s -d '|' - | sed 's/|/ | /g'
}

# Runs the words, and leaves what they said in $said; a second time where another program was a moment faster.
run_apt() {
    code=0
    said=$("$@" 2>&1) || code=$?
    case $code,$said in
        0,*) ;;
        *'Could not get lock'* | *'was locked by another process'*)
            wait_for_apt
            code=0
            said=$("$@" 2>&1) || code=$? ;;
    esac
    return "$code"
}

# $1: how apt-get says that an earlier installation was cut off; $2: what ends it, in short; the rest: that command.
# Then runs $install again, where it had failed so.
repair() {
    sign=$1 name=$2
    shift 2
    case $said in *"$sign"*) ;; *) return 1 ;; esac
    say "an earlier installation was cut off: ending it with $name$how"
    run_apt "$@" || true
    repaired=$said
    # shellcheck disable=SC2086  # a word for each option
    if run_apt apt_get $install; then return; fi
    said="$repaired
$said"
    return 1
}

install_package() {
    command -v apt-get >/dev/null ||
        fail "system: must be Debian or Ubuntu, or have Python's modules venv and ensurepip (found: neither). Install them with your package manager, then type the command again"
    reach_root "$1"
    case $sudo in sudo*) how=' (with sudo)' ;; *) how= ;; esac
    say "installing the package $1 with apt-get$how"
    wait_for_apt
    options="--quiet --option=DPkg::Lock::Timeout=$apt_wait --option=Dpkg::Use-Pty=0"
    install="$options --yes --no-install-recommends install $1"
    # A source that cannot be refreshed must not stop the installation; that itself decides.
    # shellcheck disable=SC2086  # a word for each option
    run_apt apt_get $options update || true
    refreshed=$said
    # shellcheck disable=SC2086  # $sudo and the options are words
    if run_apt apt_get $install ||
        # In this order: what dpkg cannot end lacks packages. --no-remove: a repair takes nothing away.
        repair 'dpkg was interrupted' 'dpkg --configure -a' $sudo dpkg --configure -a ||
        repair 'E: Unmet dependencies' 'apt-get --fix-broken install' \
            apt_get $options --yes --no-install-recommends --no-remove --fix-broken install; then return; fi
    case $refreshed$said in
        *'No space left'* | *'enough free space'*) fix='Free some disk (apt-get clean, as root, removes downloaded packages)' ;;
        *'Could not get lock'* | *'was locked by another process'*) fix='Wait until the program that is named ends' ;;
        *'dpkg was interrupted'* | *'E: Unmet dependencies'* | *'dpkg: error'*)
            fix='Put right what is named; dpkg --configure -a and apt-get --fix-broken install, as root, try again' ;;
        *)
            fix='Check the network, and the package sources that are named'
            [ -z "${bundle-}" ] || grep -qxF "Package: $1" "$bundle/packages/Packages" ||
                fix="The bundle does not hold it: make one of this checkout, or move $bundle away to use the network" ;;
    esac
    fail "package $1: must be installed once (found: $(apt_complaints "$refreshed
$said")). $fix, then type the command again"
}
