#!/usr/bin/env bash
# Checks the chart of deploy/helm without a cluster: Helm's own lint and its schema, which is closed; what it makes against
# the types of Kubernetes, read strictly (helm/_check), and KEDA's definition; and that wrong values are refused. Helm and
# the types are Go modules. The first time Helm takes three minutes to build.
set -euo pipefail
cd "$(dirname "$0")/helm"
go=${GO:-go}
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
GOBIN="$made" $go install helm.sh/helm/v4/cmd/helm@v4.3.1
(cd _check && $go build -o "$made/check" .)
helm() { HELM_CACHE_HOME=$made HELM_CONFIG_HOME=$made HELM_DATA_HOME=$made "$made/helm" "$@"; }

for values in stepjet/values.yaml all.yaml; do
  helm lint --strict --quiet stepjet -f $values
  mkdir -p "$made/keda"
  helm template s stepjet --namespace tools -f $values >"$made/objects.yaml"
  echo -n "$values: "
  "$made/check" "$made/keda" <"$made/objects.yaml"
done
keda=$($go mod download -json github.com/kedacore/keda/v2@v2.21.0 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
for scaled in "$made"/keda/*.yaml; do
  ../../bin/lab manifest "$scaled" --definition "$keda/config/crd/bases/keda.sh_scaledobjects.yaml" \
    --scaler "$keda/pkg/scalers/metrics_api_scaler.go" --trigger metrics-api
done

# A variable or a flag that a program does not know does nothing.
for program in orchestrator toolworker modelworker "stepjet ui"; do ../../bin/$program --help; done >"$made/help"
for name in $(grep -oE 'name: (STEPJET|NATS)_[A-Z_]+' "$made/objects.yaml" | sed 's/name: //' | sort -u); do
  grep -q "env $name" "$made/help" || { echo "no program reads $name"; exit 1; }
done
for flag in $(grep -oE '"--[a-z]+"' stepjet/templates/ui.yaml | tr -d '"' | sort -u); do
  grep -q -- "$flag " "$made/help" || { echo "stepjet ui has no flag $flag"; exit 1; }
done

# The check itself finds what it is for.
found() {
  if sed "$1" "$made/objects.yaml" | "$made/check" "$made" >"$made/wrong" 2>&1; then echo "the check finds nothing wrong after $1"; exit 1; fi
}
found 's/terminationGracePeriodSeconds:/terminationGracePeriod:/'
found 's/readOnlyRootFilesystem: true/readOnlyRootFilesystem: false/'
found 's/^    app.kubernetes.io.component: orchestrator$/&s/'
found 's/livenessProbe: /startupProbe2: /'
found 's/maxUnavailable: 1$/maxUnavailable: [1]/'
found 's/secretRef: {name: model-keys}/secretRef: {names: model-keys}/'

refused() {
  if helm template s stepjet "$@" >"$made/wrong" 2>&1; then echo "the chart takes $*"; exit 1; fi
}
refused --set authorities.configMap=ours
refused --set orchestrator.replica=3
refused --set orchestrator.durability=sometimes
refused --set workers.weather.slots=0
refused --set workers.weather.slot=1
refused --set workers.Weather.slots=1
refused --set nats.url=nats.example.com
refused --set workers.weather.keda.enabled=true
refused --set modelworker.enabled=true
refused --set ui.enabled=true,ui.auth.secret=who
refused --set ui.enabled=true,ui.hosts[0]=a.example.com
refused --set orchestrator.credentials.form=password
echo "wrong values are refused"
helm show values stepjet >"$made/values"
# What README.md says of a value is a value.
for value in $(sed -n 's/^| `\([a-zA-Z.]*\)`.*/\1/p' README.md); do
  grep -qE "(^|[ {])${value##*.}:" "$made/values" || { echo "README.md names $value, which is no value"; exit 1; }
done
