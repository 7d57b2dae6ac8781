#!/bin/sh
# Creates a virtual environment with pip in the directory given: `tools/venv.sh .venv`.
#
# Takes the newest Python from 3.11 on that really runs (a version manager may leave shims that do not), or the first such in PYTHON.
# Another one on the path is taken if it is faster by a tenth: one that was built without its optimizations, as version managers do,
# makes the interpreted broker slower by a sixth. Never installs anything outside the directory, so a Python that refuses system-wide pip
# (PEP 668) is fine. Where the distribution ships Python without `ensurepip` (Debian without python3-venv) it tries, in turn:
# virtualenv, uv, the system's pip aimed at the new environment, and last a pip downloaded from the package index.
set -eu

dir=$1
here=$(dirname "$0")
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Prints how many microseconds a little work takes; three times as many without the headers that `make compile` needs.
measure='
import os, sys, sysconfig, time
if sys.version_info < (3, 11): sys.exit(1)
def work():
    begun, seen = time.process_time(), {}
    for number in range(20_000):
        key = str(number % 1_000)
        seen[key] = seen.get(key, 0) + len(key)
    return time.process_time() - begun
has_headers = os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
print(round(1e6 * min(work() for _ in range(5)) * (1 if has_headers else 3)))
'

on_the_path() {
    for name in python3.14 python3.13 python3.12 python3.11 python3 python; do
        echo "$PATH" | tr ':' '\n' | while read -r folder; do
            if [ -x "$folder/$name" ] && [ "$folder" != "$dir/bin" ]; then echo "$folder/$name"; fi
        done
    done
}

pick_python() {
    if [ -n "${PYTHON:-}" ]; then
        for candidate in $PYTHON; do
            if "$candidate" -c "$measure" >/dev/null 2>&1; then
                echo "$candidate"
                return 0
            fi
        done
        return 1
    fi
    chosen= least=
    while read -r candidate; do
        if took=$("$candidate" -c "$measure" 2>/dev/null) && { [ -z "$least" ] || [ $((took * 10)) -lt $((least * 9)) ]; }; then
            chosen=$candidate least=$took
        fi
    done <<END
$(on_the_path)
END
    [ -n "$chosen" ] && echo "$chosen"
}

has_pip() {
    "$dir/bin/python" -m pip --version >>"$log" 2>&1
}

with_ensurepip() { "$python" -m venv "$dir" >>"$log" 2>&1; }
with_virtualenv() { "$python" -m virtualenv --quiet "$dir" >>"$log" 2>&1; }
with_uv() { command -v uv >/dev/null 2>&1 && uv venv --quiet --seed --python "$python" "$dir" >>"$log" 2>&1; }
with_system_pip() {
    "$python" -m venv --without-pip "$dir" >>"$log" 2>&1 &&
        "$python" -m pip --python "$dir/bin/python" install --quiet pip >>"$log" 2>&1
}
with_downloaded_pip() {
    "$python" -m venv --without-pip "$dir" >>"$log" 2>&1 && "$dir/bin/python" "$here/bootstrap_pip.py" >>"$log" 2>&1
}

if ! python=$(pick_python); then
    echo "No Python 3.11 or later found${PYTHON:+ as '$PYTHON'}." >&2
    echo "Install one (Debian, Ubuntu: apt install python3 python3-venv) or name it: make PYTHON=/path/to/python3.12 …" >&2
    exit 1
fi

for way in with_ensurepip with_virtualenv with_uv with_system_pip with_downloaded_pip; do
    rm -rf "$dir"
    if $way && has_pip; then
        echo "Created $dir with $("$dir/bin/python" --version)."
        exit 0
    fi
done

rm -rf "$dir"
cat "$log" >&2
echo "$python cannot create a virtual environment with pip." >&2
echo "Install what is missing (Debian, Ubuntu: apt install python3-venv) and try again." >&2
exit 1
