package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// A handler that asks ends its attempt with the question; the next is told what was answered, and the state.
func TestAHandlerAsks(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	w.worker(Config{}, func(worker *Worker) {
		require.NoError(t, worker.HandleRaw(&tool.Definition{Name: "book"}, func(ctx context.Context, _ json.RawMessage) (Output, error) {
			if r, ok := Answered(ctx); ok {
				body, err := json.Marshal([]any{r.Attempt, r.Answer, r.State, MayAsk(ctx)})
				return Output{Body: body}, err
			}
			err := Ask(ctx, Question{Text: "May s3cret have it?", Schema: json.RawMessage(`{"type":"string"}`), State: json.RawMessage(`{"hold":1}`)})
			return Output{}, fmt.Errorf("a middleware: %w", err)
		}))
		Handle(worker, "wrong", func(ctx context.Context, _ struct{}) (string, error) { return "", Ask(ctx, Question{}) })
	})
	secret, err := wire.NewContext(map[string]string{"token": "s3cret"}, "token")
	require.NoError(t, err)
	first := w.attempt("book", "r", "first")
	w.dispatch(first, `{}`, func(s *wire.Step) { s.MayAsk, s.Context = 16, secret })
	r := w.result(first)
	require.Nil(t, r.Error)
	require.NotContains(t, r.Asks.Question, "s3cret", "it is shown to people")
	require.JSONEq(t, `{"hold":1}`, string(r.Asks.State))
	require.Empty(t, r.Body)

	second := first
	second.Number = 2
	w.dispatch(second, `{}`, func(s *wire.Step) {
		s.MayAsk, s.Reply = 15, &wire.Reply{Attempt: 1, Answer: json.RawMessage(`"12A"`), State: r.Asks.State}
	})
	require.JSONEq(t, `[1,"12A",{"hold":1},15]`, string(w.result(second).Body))

	unasked := w.attempt("book", "r", "unasked")
	w.dispatch(unasked, `{}`)
	f := w.result(unasked).Error
	require.Equal(t, fault.ToolTerminal, f.Code)
	require.Contains(t, f.Message, "nobody can be asked: the run's contract")

	wrong := w.attempt("wrong", "r", "wrong")
	w.dispatch(wrong, `{}`, func(s *wire.Step) { s.MayAsk = 1 })
	require.Equal(t, fault.ToolTerminal, w.result(wrong).Error.Code)
	w.dispatch(w.attempt("wrong", "r", "often"), `{}`, func(s *wire.Step) { s.Reply = &wire.Reply{Attempt: 1, Answer: json.RawMessage(`1`)} })
	require.Contains(t, w.result(w.attempt("wrong", "r", "often")).Error.Message, "too often")

	require.Equal(t, fault.ToolTerminal, fault.CodeOf(Ask(t.Context(), Question{Text: "Anybody?"})))
	_, ok := Answered(t.Context())
	require.False(t, ok)
	require.Zero(t, MayAsk(t.Context()))
}
