#!/usr/bin/env bash
# The demo on a machine that has nothing yet: scripts/fresh_demo.sh FRESH_MACHINE, as root, in a mount namespace of its own.
set -euo pipefail
export FRESH_MACHINE_CACHE="${FRESH_MACHINE_CACHE:-/var/tmp/fresh-machine}"
# Mount points that another run has left in this folder; it is removed, and what is mounted there must not be.
awk -v folder="$FRESH_MACHINE_CACHE/" 'index($2, folder) == 1 { print $2 }' /proc/self/mounts | sort -r | xargs -r umount -l
exec "$1" scripts/demo.sh
