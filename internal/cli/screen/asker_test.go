package screen

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/outcome"
)

// lastWord is a board on which an approval ends the run that asked for it, and with that whoever asks.
type lastWord struct {
	Board
	over context.CancelFunc
}

func (b lastWord) Approve(ctx context.Context, _ *outcome.Question, a client.Answer) (*client.Answered, error) {
	b.over()
	return &client.Answered{Answered: outcome.Answered{Decision: outcome.DecisionApproved, By: a.By}}, ctx.Err()
}

// An answer with which the run ends is told of, though nobody is asked any more by then; one that was interrupted is not.
func TestTheAnswerThatEndsTheRunIsTold(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"over": "approved by ann\n", "interrupted": ""} {
		var shown bytes.Buffer
		whole, interrupt := context.WithCancel(t.Context())
		ctx, over := context.WithCancel(whole)
		if name == "interrupted" {
			over = interrupt
		}
		t.Cleanup(interrupt)
		p := &Asker{whole: whole, ctx: ctx, Asked: Asked{
			By: "ann", Board: lastWord{over: over},
			Screen:   New(&shown, false, func() (int, int) { return 80, 24 }),
			Patience: context.WithCancel,
			Stands:   func(a *client.Answered) string { return a.Decision + " by " + a.By },
			Bold:     func(s string) string { return s },
		}}
		require.Equal(t, name == "over", p.answer(&outcome.Question{Kind: outcome.Approval}, "y"), name)
		require.Equal(t, want, shown.String(), name)
	}
}
