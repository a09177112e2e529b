#!/usr/bin/env bash
# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Run nox on a machine that may have nothing but Debian or Ubuntu on it:
#   tests/tools/bootstrap.sh [ARGUMENTS OF NOX]
# nox gets a virtual environment in the user's cache, named by Python and requirements.
set -euo pipefail

# Hundreds of processes import the same modules: without bytecode each compiles them again.
unset PYTHONDONTWRITEBYTECODE

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)
requirements=$repository/tests/requirements/nox.txt
cache=${XDG_CACHE_HOME:-$HOME/.cache}/kubegpu
versions="3.13 3.12 3.11"

# A Python counts if it runs (a pyenv shim may not) and can make environments.
works() {
    "$1" -c "import sys, venv, ensurepip; sys.exit('%d.%d' % sys.version_info[:2] != '$2')" \
        >/dev/null 2>&1
}

find_python() {
    local version candidate
    for version in $versions; do
        for candidate in "python$version" "/usr/bin/python$version" \
            "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/"python$version"; do
            if works "$candidate" "$version"; then
                echo "$candidate"
                return 0
            fi
        done
    done
    return 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

if ! python=$(find_python); then
    echo "No Python that can make virtual environments: installing python3-venv" >&2
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
    if ! python=$(find_python); then
        echo "Needed: one of Python $versions, with venv. Next step: install one of them." >&2
        exit 1
    fi
fi

key=$({ "$python" --version && cat "$requirements"; } | sha256sum | cut -c1-12)
environment=$cache/venv-nox-$key
mkdir -p "$cache"
# One process at a time makes it.
exec 9>"$environment.lock"
flock 9
if [ ! -e "$environment/.complete" ]; then
    rm -rf "$environment"
    "$python" -m venv "$environment"
    "$environment/bin/python" -m pip install -qq --disable-pip-version-check \
        -r "$requirements"
    touch "$environment/.complete"
fi
exec 9>&-
exec "$environment/bin/nox" --noxfile "$repository/noxfile.py" "$@"
