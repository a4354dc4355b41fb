#!/usr/bin/env bash
# Checks what is in this folder with the programs that will read it: systemd's own rating of the units (0 is shut in, 10
# is open), Prometheus' own tests of the alerts and its judgement of what the programs tell, the closed schema of the
# Compose specification, with the program of its authors, and KEDA's definition of what it scales, closed. Installs systemd
# and Prometheus from Debian where they are absent, and has the last two from the module proxy.
set -euo pipefail
cd "$(dirname "$0")"
../.ci/debian systemd-analyze systemd
../.ci/debian promtool prometheus
for unit in ./*.service; do
  echo "$unit"
  systemd-analyze security --offline=true --threshold=20 "$unit" | tail -1
done
echo ./compose.yaml
${GO:-go} run github.com/compose-spec/compose-go/v2/cmd@v2.16.2 compose.yaml >/dev/null
for program in $(sed -n 's/.*PROGRAM: \([a-z]*\).*/\1/p' compose.yaml); do
  [ -d "../cmd/$program" ] || { echo "$program is no program of cmd/"; exit 1; }
done
# What "stepjet init" makes is held against the same schema.
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
for language in go ts; do
  ../bin/stepjet init $language "$made/$language" --stepjet .. --quiet >/dev/null
  echo "compose.yaml of stepjet init $language"
  (cd .. && ${GO:-go} run github.com/compose-spec/compose-go/v2/cmd@v2.16.2 "$made/$language/compose.yaml" >/dev/null)
done
promtool check rules prometheus/alerts.yaml
promtool test rules prometheus/alerts_test.yaml
# What the programs tell, read and judged by Prometheus' own tool.
(cd .. && ${GO:-go} test -tags promtool -count 1 -run Prometheus ./internal/serve)
# KEDA drops a field that it does not know, and finds out about a trigger once it runs: both are held against its own words.
keda=$(${GO:-go} mod download -json github.com/kedacore/keda/v2@v2.21.0 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
../bin/lab manifest keda-scaledobject.yaml --definition "$keda/config/crd/bases/keda.sh_scaledobjects.yaml" \
  --scaler "$keda/pkg/scalers/metrics_api_scaler.go" --trigger metrics-api
# So does NACK: what it is to make is held against what it knows, and against its own definitions where NACK_CRDS names them.
for definitions in "$PWD/nack/definitions.yaml" ${NACK_CRDS:+"$NACK_CRDS"}; do
  ../bin/lab manifest nack/stepjet.yaml --definition "$definitions"
done
# An alert over a metric that nobody has never fires, and nothing is scaled on one.
for name in $(grep -ohE 'stepjet_[a-z_]+' prometheus/alerts.yaml keda-scaledobject.yaml | sed -E 's/_(bucket|count|sum)$//' | sort -u); do
  grep -q "\`$name\`" ../docs/operations.md || { echo "$name is no metric of docs/operations.md"; exit 1; }
done
