#!/usr/bin/env bash
# Checks what is in this folder with the programs that will read it: systemd's own rating of the units (0 is shut in, 10
# is open), Prometheus' own tests of the alerts, and the closed schema of the Compose specification, with the programs of
# its authors. Installs systemd and Prometheus from Debian where they are absent, and runs the last from the module proxy.
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
promtool check rules prometheus/alerts.yaml
promtool test rules prometheus/alerts_test.yaml
# An alert over a metric that nobody has never fires.
for name in $(grep -oE 'stepjet_[a-z_]+' prometheus/alerts.yaml | sed -E 's/_(bucket|count|sum)$//' | sort -u); do
  grep -q "\`$name\`" ../docs/operations.md || { echo "$name is no metric of docs/operations.md"; exit 1; }
done
