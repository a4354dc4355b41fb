#!/usr/bin/env bash
# Makes a release by GoReleaser itself without publishing anything: its own check of .goreleaser.yaml, and then the archives
# of this platform, checksums, the sources, and syft's bills of materials, which are looked into as a user would. ALL=1 makes
# the archives of all platforms. Nothing is signed. The first time GoReleaser and syft take ten minutes to build; bin/tools
# keeps them.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
tools=$PWD/bin/tools
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
have() { [ -x "$tools/$1" ] || GOBIN="$tools" GOFLAGS=-mod=mod $go install "$2"; }
have goreleaser github.com/goreleaser/goreleaser/v2@v2.15.2
have syft github.com/anchore/syft/cmd/syft@v1.52.0
export PATH=$tools:$PATH SYFT_CHECK_FOR_APP_UPDATE=false

goreleaser check
cp .goreleaser.yaml "$made/config.yaml"
if [ -z "${ALL:-}" ]; then
  sed -i "s/goos: \[.*\]$/goos: [$($go env GOOS)]/; s/goos: \[linux\]/goos: [$($go env GOOS)]/; s/goarch: \[amd64, arm64\]/goarch: [$($go env GOARCH)]/" "$made/config.yaml"
fi
git clone --quiet --depth 1 "file://$PWD" "$made/stepjet"
(cd "$made/stepjet" && goreleaser release --snapshot --clean --skip=before,docker,sign -f "$made/config.yaml")

cd "$made/stepjet/dist"
sha256sum --quiet -c checksums.txt
for archive in *.tar.gz *.zip; do
  [ -e "$archive" ] || continue
  grep -q "  $archive\$" checksums.txt || { echo "checksums.txt has no $archive"; exit 1; }
  sbom=$archive.sbom.json
  grep -q '"spdxVersion":' "$sbom" || { echo "$sbom is no bill of materials"; exit 1; }
  grep -q 'nats-io/nats.go' "$sbom" || { echo "$sbom does not say what $archive is made of"; exit 1; }
  echo "$archive: $(stat -c %s "$archive") bytes, $(grep -o '"SPDXID": *"SPDXRef-Package' "$sbom" | wc -l) packages in its bill of materials"
done
archive=$(ls stepjet_*_"$($go env GOOS)_$($go env GOARCH)".tar.gz)
mkdir unpacked && tar -xzf "$archive" -C unpacked
for file in LICENSE README.md CHANGELOG.md llms.txt skills/stepjet/SKILL.md; do
  [ -s "unpacked/$file" ] || { echo "$archive has no $file"; exit 1; }
done
./unpacked/stepjet version
NO_COLOR=1 ./unpacked/stepjet run - <"../examples/plans/weather.json" | grep 'degrees warmer'
