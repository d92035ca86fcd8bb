# shellcheck shell=sh
# Sourced by the commands at the root: makes the environment they run in, from nothing, and only what is missing.
# Needs a Debian or Ubuntu with apt, as root or with sudo. The caller has set -eu and stands in the project's root.
#
# Everything stays in two folders: .uv (the pinned uv, installed by hash) and .venv (the locked environment, on the
# system's python, which is what the lab's machines have too).

export PIP_DISABLE_PIP_VERSION_CHECK=1
unset PYTHONHOME PYTHONPATH VIRTUAL_ENV
PYTHON=/usr/bin/python3

say() {
    printf '%s\n' "$*" >&2
}

die() {
    say "$@"
    exit 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo "$@"
    else
        die "This needs root, and there is no sudo: $*"
    fi
}

# stage NAME COMMAND...: run a command and say how long it took. A command that fails ends everything.
stage() {
    stage_name=$1
    shift
    stage_start=$(date +%s)
    say "-- $stage_name"
    "$@"
    say "-- $stage_name: $(($(date +%s) - stage_start)) s"
    stage_name=
}

# To be called by the caller's EXIT trap.
tell_failed_stage() {
    [ -z "${stage_name:-}" ] || say "-- $stage_name: FAILED"
}

# need_packages NAME...: install those Debian packages that are not there.
need_packages() {
    missing=
    for package in "$@"; do
        case $(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null) in
        ii*) ;;
        *) missing="$missing $package" ;;
        esac
    done
    [ -n "$missing" ] || return 0
    command -v apt-get >/dev/null 2>&1 || die "Missing packages, and this machine has no apt-get:$missing"
    say "   apt-get install$missing"
    apt_quietly update -o APT::Update::Error-Mode=any
    # shellcheck disable=SC2086 # a list of plain names
    apt_quietly install --no-install-recommends $missing
}

apt_quietly() {
    apt_log=$(mktemp)
    if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=300 "$@" >"$apt_log" 2>&1; then
        cat "$apt_log" >&2
        rm -f "$apt_log"
        die "apt-get $1 failed."
    fi
    rm -f "$apt_log"
}

environment() {
    need_packages python3-venv
    in_step=$(cat requirements-uv.txt requirements.lock pyproject.toml | sha256sum)
    if [ "$(cat .venv/in-step 2>/dev/null)" = "$in_step" ] && .venv/bin/python -c 'import towline' 2>/dev/null; then
        return 0
    fi
    make_uv
    [ -x .venv/bin/python ] || .uv/bin/uv venv --quiet --clear --python "$PYTHON" --python-preference only-system .venv
    .uv/bin/uv pip sync --quiet --python .venv/bin/python --require-hashes requirements.lock
    .uv/bin/uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation -e .
    printf '%s\n' "$in_step" >.venv/in-step
}

make_uv() {
    wanted=$(sha256sum <requirements-uv.txt)
    [ "$(cat .uv/in-step 2>/dev/null)" != "$wanted" ] || return 0
    "$PYTHON" -m venv --clear .uv
    .uv/bin/python -m pip install --quiet --require-hashes -r requirements-uv.txt
    printf '%s\n' "$wanted" >.uv/in-step
}
