#!/usr/bin/env bash
# Makes the root file system that tests install our package into: this machine's release with its
# essential packages and what the package depends on, without apt, and nothing of the build. Made
# once, from the mirrors that this machine uses (60 MB); says where its archive is.
set -euo pipefail

# Beside the essential ones. libfabric1 for the program that tests use, which has that feature.
readonly PACKAGES=adduser,libstdc++6,libfabric1
readonly CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/manxdb"

# shellcheck source=/dev/null
release="$(. /etc/os-release && echo "$VERSION_CODENAME")"
root="$CACHE/root-$release-${PACKAGES//,/-}.tar"
# Without root nothing can be installed there either: the suite says that it is skipped.
if [ ! -f "$root" ] && [ "$(id -u)" -eq 0 ]; then
    mkdir -p "$CACHE"
    for sources in /etc/apt/sources.list.d/{debian,ubuntu}.sources /etc/apt/sources.list; do
        [ ! -f "$sources" ] || break
    done
    # Through a temporary name: an interrupted run leaves nothing that looks whole.
    mmdebstrap --quiet --variant=essential --include="$PACKAGES" --format=tar \
        "$release" "$root.part" "$sources"
    mv "$root.part" "$root"
fi
echo "$root"
