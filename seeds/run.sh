#!/bin/bash
# Runs the contract for the sound plugin and for each seeded bug, and prints a table.
#   ./run.sh            all bugs of bugs.txt      ./run.sh NAME...   only these
#   PARALLEL=3          runs at the same time     OUT=out            folder of the logs
cd "$(dirname "$0")" || exit
export CGO_ENABLED=0 GOFLAGS="-modfile=$(cd .. && pwd)/hack/minors/1.37.mod -trimpath -buildvcs=false"
OUT=${OUT:-out}; mkdir -p "$OUT"; rm -f "$OUT/.table"
if [ -z "$NOBUILD" ]; then (cd .. && nice -n 15 go test -vet=off -c -o seeds/${BIN:-seeds.test} ./seeds) || exit; fi
one() {
	name=$1
	if [ "$name" = sound ]; then name=; fi
	SEED=$name nice -n 15 ./${BIN:-seeds.test} -test.v ${RUN:+-test.run=$RUN} >"$OUT/$1.txt" 2>&1
}
export -f one; export OUT RUN BIN RICH
if [ $# -gt 0 ]; then names="$*"; else names="sound $(cat bugs.txt)"; fi
if [ -z "$ONLYTABLE" ]; then printf '%s\n' $names | xargs -P "${PARALLEL:-3}" -I{} bash -c 'one {}'; fi
OUT=$OUT python3 table.py $names
