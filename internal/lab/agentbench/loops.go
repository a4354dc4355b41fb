package agentbench

import (
	"context"

	"github.com/stepjet/stepjet/internal/bench"
)

// Loop is what one loop came to, for who compares it with that of others.
type Loop struct {
	// Micros are the times from one call of the planner to the next.
	Micros []int64
	// Input are the bytes that the planner read, Prefix those of them that the request before began with, and Written those
	// of all messages that were stored.
	Input, Prefix, Written int64
}

// Loops runs an agent for each number of rounds, of three calls with results of so many bytes, whose planner puts its
// requests together. Each is run twice: what is written is counted by listening, which takes the machine's time.
func Loops(ctx context.Context, env Env, flushed bool, lengths []int, bytes int) (all []Loop, err error) {
	l := bench.Separate
	l.Always = flushed
	w, err := newWorld(ctx, env, l)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if _, err := w.play(ctx, loop{Rounds: 20, Calls: 3, Bytes: bytes, Whole: true}); err != nil { // warm up
		return nil, err
	}
	for _, rounds := range lengths {
		s, err := w.play(ctx, loop{Rounds: rounds, Calls: 3, Bytes: bytes, Whole: true})
		if err != nil {
			return nil, err
		}
		all = append(all, Loop{Micros: s.Micros, Input: s.Input, Prefix: s.Prefix})
	}
	m, err := newMeter(ctx, w.JS, w.Conn())
	if err != nil {
		return nil, err
	}
	defer m.close()
	for i, rounds := range lengths {
		c, err := w.loop(ctx, m, loop{Rounds: rounds, Calls: 3, Bytes: bytes, Whole: true})
		if err != nil {
			return nil, err
		}
		all[i].Written = c.Written.all()
	}
	return all, nil
}
