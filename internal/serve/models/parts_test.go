package models

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/agent/parts"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/worker"
)

// A request of an agent names its last part. The worker of the model reads back what it lacks, the second time nothing,
// and asks nobody about parts that are gone, that are another's or that are not what the request says.
func TestAModelIsAskedInParts(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var bodies []string
	c, said := world(t, 1, "", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		bodies = append(bodies, string(body))
		mu.Unlock()
		_, _ = io.WriteString(w, answer)
	})
	store, err := kv.Open(t.Context(), said.nc)
	require.NoError(t, err)
	t.Cleanup(store.Close)
	// "write" writes parts, as the owner of an agent does, and returns how a request names the last of them.
	w, err := worker.New(said.nc, worker.Config{Name: "writer"})
	require.NoError(t, err)
	worker.Handle(w, "write", func(ctx context.Context, in struct {
		Rounds int    `json:"rounds"`
		Spoil  string `json:"spoil,omitempty"`
	}) (l parts.Link, err error) {
		info, _ := worker.InfoFrom(ctx)
		var before *parts.Link
		for i := range in.Rounds {
			p := parts.Part{Round: i, Before: before, Entry: json.RawMessage(`{"note":"` + in.Spoil + `","text":"I count to ` + strings.Repeat("I", i+1) + `.","records":[]}`)}
			if i == 0 {
				p.Head = json.RawMessage(`{"instructions":"Be short.","input":"Which river?","tools":[]}`)
			}
			raw := p.Encode()
			l = parts.Link{Name: subjects.PartName(subjects.NewRun(info.Tenant, info.Run), info.Generation, "a", i), SHA256: parts.Digest(raw)}
			before = &parts.Link{Name: l.Name, SHA256: l.SHA256}
			if i == 0 && in.Spoil == "gone" {
				continue
			}
			if i == 0 && in.Spoil == "bytes" {
				raw[len(raw)-4] ^= 1
			}
			if _, err = store.Archive.PutBlob(ctx, "", l.Name, raw); err != nil {
				return l, err
			}
		}
		if in.Spoil == "name" {
			l.Name = "other/r/1/=part.a.0"
		}
		return l, nil
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	<-w.Ready()

	asks := func(id, spoil string) []string {
		return []string{`{"id":"` + id + `w","tool":"write","arguments":{"rounds":3,"spoil":"` + spoil + `"}}`,
			`{"id":"` + id + `","tool":"model","retry":{"max_attempts":1},"arguments":{"part":"$ref:` + id + `w","mode":"plan",
				"messages":[{"role":"user","content":"Well?","round":3}]}}`}
	}
	out := run(t, c, append(asks("a", ""), `{"id":"b","tool":"model","arguments":{"part":"$ref:aw","mode":"plan"},"depends_on":["a"]}`)...)
	require.Equal(t, outcome.Succeeded, out.Status, "%v", out.Errors)
	require.Len(t, bodies, 2)
	for _, text := range []string{"Be short.", "Which river?", "I count to I.", "I count to III."} {
		require.Contains(t, bodies[0], text)
		require.Contains(t, bodies[1], text)
	}
	require.Contains(t, bodies[0], "Well?")

	for spoil, code := range map[string]fault.Code{"gone": fault.ToolFailed, "bytes": fault.ToolTerminal, "name": fault.ToolTerminal} {
		out := run(t, c, asks("a", spoil)...)
		require.NotEqual(t, outcome.Succeeded, out.Status, spoil)
		require.Equal(t, code, out.Errors[0].Code, "%s: %v", spoil, out.Errors[0])
		require.NotEmpty(t, out.Errors[0].Hint)
	}
	require.Len(t, bodies, 2, "nobody else was asked")
}
