package natstest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/subjects"
)

// Backup is a copy of a stream, as "nats stream backup" makes it.
type Backup struct {
	Stream        string
	config, state json.RawMessage
	chunks        [][]byte
}

// backupPatience bounds each answer of the server.
const backupPatience = 2 * time.Minute

// BackUp copies a stream while it is in use, without its consumers.
func BackUp(t testing.TB, nc *nats.Conn, stream string) Backup {
	t.Helper()
	sub, err := nc.SubscribeSync(nc.NewInbox())
	require.NoError(t, err)
	defer func() { _ = sub.Unsubscribe() }()
	request, err := json.Marshal(map[string]any{"deliver_subject": sub.Subject, "no_consumers": true})
	require.NoError(t, err)
	b := Backup{Stream: stream}
	var answer struct {
		Error         json.RawMessage
		Config, State json.RawMessage
	}
	ask(t, nc, subjects.StreamRequest("SNAPSHOT", stream), request, &answer)
	require.Empty(t, string(answer.Error))
	b.config, b.state = answer.Config, answer.State
	for {
		m, err := sub.NextMsg(backupPatience)
		require.NoError(t, err)
		if len(m.Data) == 0 {
			require.Contains(t, []string{"", "204"}, m.Header.Get("Status"), "%v", m.Header)
			return b
		}
		b.chunks = append(b.chunks, m.Data)
		if m.Reply != "" { // the last one wants no answer
			require.NoError(t, m.Respond(nil))
		}
	}
}

// Restore makes a stream of a copy, as "nats stream restore" does.
func Restore(t testing.TB, nc *nats.Conn, b Backup) {
	t.Helper()
	request, err := json.Marshal(map[string]any{"config": b.config, "state": b.state})
	require.NoError(t, err)
	var answer struct {
		Error   json.RawMessage
		Deliver string `json:"deliver_subject"`
	}
	ask(t, nc, subjects.StreamRequest("RESTORE", b.Stream), request, &answer)
	require.Empty(t, string(answer.Error))
	for _, chunk := range append(b.chunks, nil) { // an empty one is the end
		m, err := nc.Request(answer.Deliver, chunk, backupPatience)
		require.NoError(t, err)
		var failed struct{ Error json.RawMessage }
		if len(m.Data) > 0 {
			require.NoError(t, json.Unmarshal(m.Data, &failed))
		}
		require.Empty(t, string(failed.Error))
	}
}

func ask(t testing.TB, nc *nats.Conn, subject string, request []byte, answer any) {
	t.Helper()
	m, err := nc.Request(subject, request, backupPatience)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(m.Data, answer))
}
