package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

func TestNoteForm(t *testing.T) {
	t.Parallel()
	form := func(note json.RawMessage) nats.Msg {
		h, body := wire.NoteMessage("w1", note)
		require.Equal(t, []string{"w1"}, h[subjects.HeaderWorker])
		delete(h, subjects.HeaderWorker)
		return nats.Msg{Header: h, Data: body}
	}
	m := form(json.RawMessage(`{"task":"786512e2"}`))
	golden(t, "note", m.Header, m.Data, wiretest.Opaque, func(m nats.Msg) nats.Msg {
		note, err := wire.ParseNote(m.Header, m.Data)
		require.NoError(t, err)
		return form(note)
	})
	for _, body := range []string{"", "{", `"` + strings.Repeat("x", wire.MaxNote) + `"`} {
		_, err := wire.ParseNote(wire.Versioned(), []byte(body))
		require.Equal(t, fault.InvalidRecord, fault.CodeOf(err), "%.20s", body)
	}
	_, err := wire.ParseNote(nats.Header{subjects.HeaderVersion: {"9"}}, []byte("{}"))
	require.Equal(t, fault.NewerVersion, fault.CodeOf(err))
}
