package outcome

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/unknown"
)

// slowly reads an outcome with encoding/json alone.
func slowly(b []byte) (o Outcome, err error) {
	type plain Outcome
	err = json.Unmarshal(b, (*plain)(&o))
	if err == nil {
		o.unknown = unknown.Of(b, outcomeNames)
	}
	return o, err
}

// TestPlainOutcomesAreReadAsEncodingJSONReadsThem compares the two readers on what is written, and on what isn't.
func TestPlainOutcomesAreReadAsEncodingJSONReadsThem(t *testing.T) {
	t.Parallel()
	const usual = `{"run":"r","status":"succeeded","generation":17,"results":{"a": {"x": [1.0, "é\n"]} ,"b":null},"errors":[],"stats":{"steps":7,"cancelled":1,"elapsed_ms":1.5e3,"bytes_kept_out":-0}}`
	plain, ok := readPlain([]byte(usual))
	require.True(t, ok)
	want, err := slowly([]byte(usual))
	require.NoError(t, err)
	require.Equal(t, want, plain)
	require.Equal(t, 7, plain.Stats.Steps)

	rng, plainly := rand.New(rand.NewPCG(1, 2)), 0
	bytes := []byte(`{}[]":,\nul0e-. é`)
	for range 20_000 {
		b := []byte(usual)
		for range rng.IntN(3) + 1 {
			switch i := rng.IntN(len(b)); rng.IntN(3) {
			case 0:
				b[i] = bytes[rng.IntN(len(bytes))]
			case 1:
				b = append(b[:i], b[i+1:]...)
			case 2: // what stands there comes twice, keys and values too
				n := min(i+rng.IntN(40), len(b))
				b = append(b[:n:n], b[i:]...)
			}
		}
		plain, ok := readPlain(b)
		if !ok {
			continue
		}
		plainly++
		want, err := slowly(b)
		require.NoError(t, err, "%s", b)
		require.Equal(t, want, plain, "%s", b)
	}
	require.Greater(t, plainly, 500)
}

func TestUnusualOutcomesAreLeftToEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		``, `null`, `[]`, `{}`, `{"run":"r"`,
		`{"run":"r\u0041","status":"failed","results":{},"errors":[],"stats":{}}`,
		`{"RUN":"r","status":"failed","results":{},"errors":[],"stats":{}}`,
		`{"run":"r","status":"failed","results":null,"errors":[],"stats":{}}`,
		`{"run":"r","status":"failed","results":{"a\"":1},"errors":[],"stats":{}}`,
		`{"run":"r","status":"failed","results":{},"errors":[{"step":"a"}],"stats":{}}`,
		`{"run":"r","status":"failed","results":{},"errors":[],"stats":{"steps":1.0}}`,
		`{"run":"r","status":"failed","results":{},"errors":[],"stats":{"Steps":1}}`,
		`{"run":"r","status":"failed","results":{},"errors":[],"stats":{},"later":1}`,
	} {
		_, ok := readPlain([]byte(raw))
		require.False(t, ok, raw)
		var o Outcome
		want, err := slowly([]byte(raw))
		require.Equal(t, err == nil, o.UnmarshalJSON([]byte(raw)) == nil, raw)
		if err == nil {
			require.Equal(t, want, o, raw)
		}
	}
}

// TestHeadIsWrittenAsEncodingJSONWouldWriteIt fills every field that is not part of the body, so that none can be
// forgotten.
func TestHeadIsWrittenAsEncodingJSONWouldWriteIt(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 120_000_000, time.UTC)
	full := Run{
		Version: 1, Run: "order \"42\"", Tenant: "acme", Generation: 7, Digest: "ab", Status: Cancelled, Submitted: at, Started: at.Add(1), Finished: at.Add(2),
		StoppedBy: "é", RetryOf: "r1", RetryFrom: "a", Permissions: []string{"internet"}, Revision: 3, Amendments: []Amendment{{Step: "=", Revision: 1, By: "bot", At: at, Waits: true}}, Approval: &Answered{Decision: DecisionApproved, By: "ann", At: at}, Context: []ContextKey{{Key: "token", Step: "s", Secret: true}, {Key: "user"}}, Blob: &Handle{Name: "n", Size: 1, SHA256: "cd"},
		Stats: Stats{Steps: 9, Succeeded: 1, Failed: 2, Skipped: 3, Cancelled: 4, ElapsedMS: 12.5, BytesReturned: 5, BytesKeptOut: 6, TokensKeptOut: 7},
	}
	type head Run // without the methods
	for _, run := range []Run{full, {}, {Permissions: []string{}}, {Run: "r", Submitted: at}} {
		want, err := json.Marshal(head(run))
		require.NoError(t, err)
		require.Equal(t, string(want), string(run.Head()))
	}
	var written map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(full.Head(), &written))
	require.Len(t, written, len(runNames)-5, "all fields but outcome, plan, templates, agents and steps")
}

func BenchmarkRead(b *testing.B) {
	o := Outcome{Run: "r", Status: Succeeded, Generation: 7, Stats: Stats{Steps: 20, Succeeded: 20}}
	for i := range 20 {
		result := `{"items":[{"name":"Ada","n":1.5},{"name":"Grace","n":-2}],"next":null}`
		o.Results = append(o.Results, Result{string(rune('a' + i)), []byte(result)})
	}
	raw := o.JSON()
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := readPlain(raw); !ok {
			b.Fatal("it is plain")
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	r := Run{Run: "order-42", Status: Succeeded, Steps: make([]Step, 100)}
	for i := range r.Steps {
		r.Steps[i] = Step{ID: "step", Tool: "get_weather", Status: StepSucceeded, Worker: "worker-1"}
		r.Steps[i].Ready, r.Steps[i].Result = time.Unix(1, 0), []byte(`{"a":1}`)
	}
	b.ReportAllocs()
	for b.Loop() {
		r.JSON()
	}
}
