#!/usr/bin/env bash
# Build the wheel, install it into an empty environment outside the repository, and use it there.
# Usage, as `make wheel-test` does it, with absolute paths:
#   scripts/try_wheel.sh PYTHON REQUIREMENTS_WITH_HASHES TORCH
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1 requirements=$2 torch=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset PYTHONPATH PYTHONDONTWRITEBYTECODE

# A copy: a build folder or a list of files from an earlier build would add what is gone since.
mkdir "$folder/source" "$folder/here"
cp -r src pyproject.toml README.md LICENSE "$folder/source"
rm -rf "$folder"/source/src/*.egg-info
find "$folder/source" -name __pycache__ -prune -exec rm -r {} +
"$python" -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$folder" "$folder/source"
wheel=$(echo "$folder"/argnn-*.whl)

"$python" - "$wheel" "$folder/source/src" <<'CHECK'
import sys
import zipfile
from pathlib import Path

wheel, source = zipfile.ZipFile(sys.argv[1]), Path(sys.argv[2])
files = [path for path in (source / "argnn").rglob("*") if path.is_file()]
written = {path.relative_to(source).as_posix() for path in files}
missing = written - set(wheel.namelist())
sys.exit(f"the wheel lacks {', '.join(sorted(missing))}" if missing or not written else 0)
CHECK

"$python" -m venv --without-pip "$folder/venv"
install() {
  "$python" -m pip --python "$folder/venv/bin/python" install --quiet --no-compile "$@"
}
install --require-hashes --no-deps -r "$requirements"
install "$torch" "${wheel}[plot]"

cd "$folder/here"
PATH="$folder/venv/bin:$PATH"
case $(python -c 'import argnn; print(argnn.__file__)') in
  "$folder"/venv/*) ;;
  *) echo "another argnn than that of the wheel is imported" >&2 && exit 1 ;;
esac
argnn demo
argnn train mixed --epochs 20 --out run
argnn predict run --out classes.csv
argnn analyze run --out page.html
for made in argnn-demo/report.html run/scores.json classes.csv page.html; do
  test -s "$made" || { echo "$made was not made" >&2 && exit 1; }
done
echo "The wheel works: $(basename "$wheel")"
