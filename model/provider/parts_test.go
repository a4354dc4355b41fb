package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/agent/parts"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/model"
	"github.com/stepjet/stepjet/model/provider"
)

// Models take a small last part in their requests, and say so.
func TestARequestWithItsLastPart(t *testing.T) {
	t.Parallel()
	part := (&parts.Part{Head: json.RawMessage(`{"instructions":"Be short.","input":"2+2?","tools":[]}`),
		Entry: json.RawMessage(`{"round":0,"text":"I count.","records":[]}`)}).Encode()
	c := caller(t, model.OpenAI, "", newScript(t, stream(said("four"))))
	named := `{"part":{"name":"acme/r/1/=part.a.0","sha256":"` + parts.Digest(part) + `"},"messages":[{"role":"user","content":"Well?","round":1}],"mode":"plan"}`
	a, err := ask(t, c, string(parts.Carry([]byte(named), part)))
	require.NoError(t, err)
	require.Equal(t, "four", a.Text)
	_, err = ask(t, caller(t, model.OpenAI, "", newScript(t)), string(parts.Carry([]byte(named), []byte(`{"before":null}`))))
	require.Equal(t, fault.ToolTerminal, fault.As(err).Code)
	require.True(t, provider.Definition("model", "", &model.Config{}).Orchestration.PartContent)
}

// A request that names a part is put together before a model is asked; the part is read once.
func TestARequestInParts(t *testing.T) {
	t.Parallel()
	part := (&parts.Part{Head: json.RawMessage(`{"instructions":"Be short.","input":"2+2?","tools":[]}`),
		Entry: json.RawMessage(`{"round":0,"text":"I count.","records":[]}`)}).Encode()
	request := `{"part":{"name":"acme/r/1/=part.a.0","sha256":"` + parts.Digest(part) + `"},"messages":[{"role":"user","content":"Well?","round":1}],"mode":"plan"}`
	s := newScript(t, stream(said("four")), stream(said("four")))
	c := caller(t, model.OpenAI, "", s)
	_, err := ask(t, c, request)
	require.Equal(t, fault.ToolTerminal, fault.As(err).Code, "nobody has said how")
	require.NotEmpty(t, fault.As(err).Hint)
	_, err = ask(t, c, `{"part":{"name":"acme/r/1/a","sha256":""},"mode":"plan"}`)
	require.Equal(t, fault.InvalidArguments, fault.As(err).Code)

	reads := 0
	c.ReadParts(func(_ context.Context, name string) ([]byte, error) {
		if reads++; reads == 1 {
			return nil, errors.New("not now")
		}
		require.Equal(t, "acme/r/1/=part.a.0", name)
		return part, nil
	})
	_, err = ask(t, c, request)
	require.ErrorContains(t, err, "not now")
	for range 2 {
		a, err := ask(t, c, request)
		require.NoError(t, err)
		require.Equal(t, "four", a.Text)
	}
	require.Equal(t, 2, reads)
	got := s.requests()
	require.Len(t, got, 2)
	require.Contains(t, string(got[0].body), `{"role":"user","content":"2+2?"},{"role":"assistant","content":"I count."}`)
	require.Contains(t, string(got[0].body), `Well?`)
}
