package manifest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/manifest"
)

const crd = `
kind: CustomResourceDefinition
spec:
  group: example.com
  names: {kind: Thing}
  versions:
    - name: v1
      schema:
        openAPIV3Schema:
          type: object
          required: [spec]
          properties:
            apiVersion: {type: string}
            kind: {type: string}
            metadata: {type: object}
            spec:
              type: object
              properties:
                most: {type: integer, format: int32}
                each: {type: array, items: {type: object, properties: {type: {type: string}, metadata: {type: object, additionalProperties: {type: string}}}}}
                any: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}
`

const thing = `
apiVersion: example.com/v1
kind: Thing
metadata: {name: x, labels: {a: b}}
spec:
  most: 3
  each: [{type: t, metadata: {k: "1"}}]
  any: {b: 1}
`

func TestAFieldThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	require.NoError(t, manifest.Check([]byte(crd), []byte(thing)))
	for _, change := range [][2]string{
		{"most: 3", "mots: 3"}, {"most: 3", `most: "3"`}, {"most: 3", "most: 3.5"}, {"type: t", "typ: t"}, {`k: "1"`, "k: 1"},
		{"example.com/v1", "example.com/v2"}, {"kind: Thing", "kind: Thin"}, {"spec:", "spek:"}, {"kind: Thing", "kind: Thing\nmore: 1"},
	} {
		wrong := strings.Replace(thing, change[0], change[1], 1)
		require.NotEqual(t, thing, wrong)
		require.Error(t, manifest.Check([]byte(crd), []byte(wrong)), change)
	}
}

const scaler = "type m struct {\n" +
	"URL string `keda:\"name=url,order=triggerMetadata\"`\n" +
	"Format F `keda:\"name=format,order=triggerMetadata,default=json,enum=prometheus;json\"`\n" +
	"Timeout D `keda:\"name=timeout, order=triggerMetadata, optional\"`\n}"

func TestATriggerIsHeldAgainstItsScaler(t *testing.T) {
	t.Parallel()
	object := func(metadata string) []byte {
		return []byte("spec: {triggers: [{type: cpu, metadata: {x: y}}, {type: api, metadata: {" + metadata + "}}]}")
	}
	require.NoError(t, manifest.CheckTrigger([]byte(scaler), object(`url: "http://x", format: prometheus`), "api"))
	for _, wrong := range []string{`format: json`, `url: x, formt: json`, `url: x, format: yaml`, `url: x, timeout: 3`} {
		require.Error(t, manifest.CheckTrigger([]byte(scaler), object(wrong), "api"), wrong)
	}
	require.Error(t, manifest.CheckTrigger([]byte(scaler), object(""), "none"))
}
