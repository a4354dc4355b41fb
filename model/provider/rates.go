package provider

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/model"
	"github.com/stepjet/stepjet/worker"
)

// Rates is where the workers of a tool share how much of its models' rates is left; *kv.Queue is one.
type Rates interface {
	// Rate returns what was written last, when a server stored it, and its sequence; zero where nothing was.
	Rate(ctx context.Context, tool, model string) (rate []byte, at time.Time, seq uint64, err error)
	// SetRate writes where the sequence is still that one; ok is false where another was faster.
	SetRate(ctx context.Context, tool, model string, rate []byte, seq uint64) (ok bool, err error)
}

// limiter is the rates of one tool, as this worker keeps to them. nil keeps to none.
type limiter struct {
	tool  string
	rates Rates
	log   *slog.Logger
	begun time.Time // of the monotonic clock

	turns   sync.Mutex
	clock   kv.RecentTime
	touched time.Duration // when the servers' time was last asked for; 0: never
}

// waits is what a call is told that has to come again.
const waits = "model_waits"

// touchEvery is how often the servers' time is asked for, by writing a rate as it is and reading it back.
const touchEvery = time.Minute

// take takes a call out of a model's rate; the error says when to come again. Without an answer about the rate it goes
// on: nothing rests on it but how often a provider has to refuse.
func (l *limiter) take(ctx context.Context, m model.Model, p *model.Prepared) error {
	if l == nil || m.RPM == 0 && m.TPM == 0 {
		return nil
	}
	var wait time.Duration
	l.change(ctx, m, func(r *model.Rate, now time.Time) { wait = r.Take(m, now, who(ctx), p.Reserved) })
	if wait == 0 {
		return nil
	}
	e := fault.New(fault.ToolFailed, "the model %q has no room for another call before %s", m.Name, wait).
		WithHint("the step comes again by itself; rpm and tpm of the model are the limits")
	e.RetryAfter, e.ToolCode = wait, waits
	return e
}

// settle tells the rate what came of a call.
func (l *limiter) settle(ctx context.Context, m model.Model, p *model.Prepared, a *model.Answer, h http.Header, err error) {
	if l == nil || m.RPM == 0 && m.TPM == 0 {
		return
	}
	used, refused := int64(0), time.Duration(0)
	if a != nil {
		if used = a.Usage.InputTokens + a.Usage.OutputTokens; used == 0 {
			used = p.Reserved // nobody said
		}
	}
	var f *model.Failure
	if errors.As(err, &f) && (f.Kind == model.Limited || f.Kind == model.Overloaded) {
		refused = f.Fault().RetryAfter
	}
	// a call that was cancelled has used what it used
	l.change(context.WithoutCancel(ctx), m, func(r *model.Rate, now time.Time) { r.Settle(m, now, p.Reserved, used, h, refused) })
}

// change changes a model's rate by compare-and-set: each failure to set it is another's success. Calls of one worker
// take turns, since they would only get in each other's way.
func (l *limiter) change(ctx context.Context, m model.Model, with func(*model.Rate, time.Time)) {
	l.turns.Lock()
	defer l.turns.Unlock()
	for ctx.Err() == nil {
		done, err := l.step(ctx, m, with)
		if err != nil {
			l.log.Warn("the rate of a model can't be kept to", "tool", l.tool, "model", m.Name, "error", err)
			return
		}
		if done {
			return
		}
	}
}

// step tries once. The first time, and once a minute, it writes what is there, whose time says the servers' time as soon
// as it is read.
func (l *limiter) step(ctx context.Context, m model.Model, with func(*model.Rate, time.Time)) (done bool, err error) {
	raw, at, seq, err := l.rates.Rate(ctx, l.tool, m.Name)
	if err != nil {
		return false, err
	}
	mono := time.Since(l.begun)
	r := model.ParseRate(raw)
	if l.touched == 0 || mono-l.touched > touchEvery {
		touched, err := l.rates.SetRate(ctx, l.tool, m.Name, r.JSON(), seq)
		if touched {
			l.touched = mono
		}
		return false, err
	}
	if !at.IsZero() {
		l.clock.Heard(at, mono)
	}
	with(&r, l.clock.Best().At(mono))
	return l.rates.SetRate(ctx, l.tool, m.Name, r.JSON(), seq)
}

// who names the step of a call, the same for all its attempts.
func who(ctx context.Context) string {
	info, _ := worker.InfoFrom(ctx)
	sum := sha256.Sum256([]byte(info.Key))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}
