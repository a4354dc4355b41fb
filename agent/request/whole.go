package request

import (
	"context"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/agent/parts"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// Rendered returns a request with all its rounds, for a planner that wants it whole: in mode commands with done_plans and
// last_round_records, which are views of the rounds and repeat them.
func Rendered(ctx context.Context, r Request, k *parts.Keeper, fetch parts.Fetch) ([]byte, error) {
	whole, err := k.Whole(ctx, r.Bytes, fetch)
	if err != nil || jsontape.Unquoted(or0(member(whole, "mode"))) != string(agent.ModeCommands) {
		return whole, err
	}
	return views(whole), nil
}

// views adds to a whole request what planners of commands know its rounds by: the calls of all rounds, and those of the
// last one.
func views(whole []byte) []byte {
	done, last := [][]byte{}, [][]byte{}
	for _, round := range items(member(whole, "rounds")) {
		last = [][]byte{}
		for _, rec := range items(member(round, "records")) {
			if s := string(member(rec, "status")); member(rec, "tool") != nil && (s == `"succeeded"` || s == `"failed"`) {
				last = append(last, logged(rec))
			}
		}
		done = append(done, last...)
	}
	b := append(whole[:len(whole)-1:len(whole)-1], `,"done_plans":`...)
	b = append(jsontape.AppendArray(b, done), `,"last_round_records":`...)
	return append(jsontape.AppendArray(b, last), '}')
}
