package worker

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// What a worker has noted of an attempt, the next one finds, and can't replace; another attempt has none.
func TestANoteIsForWhoeverIsNext(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	w.worker(Config{}, func(worker *Worker) {
		require.NoError(t, worker.HandleRaw(&tool.Definition{Name: "job"}, func(ctx context.Context, _ json.RawMessage) (Output, error) {
			before, err := Noted(ctx)
			if err != nil {
				return Output{Body: []byte(fault.CodeOf(err)), Text: true}, nil
			}
			stands, err := Note(ctx, json.RawMessage(`{"job":2}`))
			if err != nil {
				return Output{}, err
			}
			body, err := json.Marshal([]json.RawMessage{before, stands})
			return Output{Body: body}, err
		}))
	})
	fresh := w.attempt("job", "r", "fresh")
	w.dispatch(fresh, `{}`)
	require.Equal(t, `[null,{"job":2}]`, string(w.result(fresh).Body))

	noted := w.attempt("job", "r", "noted")
	h, body := wire.NoteMessage("another", json.RawMessage(`{"job":1}`))
	_, _, err := w.store.Ledger.Create(w.ctx(), subjects.NoteRecord(noted, 1), h, body, nil)
	require.NoError(t, err)
	w.dispatch(noted, `{}`)
	require.Equal(t, `[{"job":1},{"job":1}]`, string(w.result(noted).Body))

	later := noted
	later.Number = 2
	w.dispatch(later, `{}`)
	require.Equal(t, `[null,{"job":2}]`, string(w.result(later).Body))

	strange := w.attempt("job", "r", "strange")
	_, _, err = w.store.Ledger.Create(w.ctx(), subjects.NoteRecord(strange, 1), wire.Versioned(), []byte("{"), nil)
	require.NoError(t, err)
	w.dispatch(strange, `{}`)
	require.Equal(t, string(fault.InvalidRecord), string(w.result(strange).Body))
}

func TestWhatIsNoNote(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	w.worker(Config{}, func(worker *Worker) {
		require.NoError(t, worker.HandleRaw(&tool.Definition{Name: "job"}, func(ctx context.Context, args json.RawMessage) (Output, error) {
			_, err := Note(ctx, args)
			return Output{Body: []byte(fault.CodeOf(err)), Text: true}, nil
		}))
	})
	large := w.attempt("job", "r", "large")
	w.dispatch(large, `{"x":"`+strings.Repeat("x", wire.MaxNote)+`"}`)
	require.Equal(t, string(fault.InvalidValue), string(w.result(large).Body))
	gone := w.attempt("job", "r", "gone")
	gone.Generation += 1000 // of which no plan stands
	w.dispatch(gone, `{}`)
	require.Equal(t, string(fault.AlreadyFinished), string(w.result(gone).Body))
	_, err := Note(context.Background(), nil)
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
	_, err = Noted(context.Background())
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
}
