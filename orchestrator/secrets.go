package orchestrator

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/seal"
	"github.com/stepjet/stepjet/wire"
)

// publishKey lets submitters know the newest key that this orchestrator holds, so that they seal secrets to it. It tries
// until that stands or ctx ends; the first try is over when it returns.
func (o *Orchestrator) publishKey(ctx context.Context, store *kv.Store, later func(func())) {
	keys := o.cfg.SecretsKey.Keys()
	if len(keys) == 0 {
		return
	}
	newest := keys[len(keys)-1]
	try := func() bool {
		there, err := store.PublishSealingKey(ctx, wire.SealingKey{ID: newest.Public.ID(), Public: newest.Public.String(), Created: newest.Created})
		switch {
		case err != nil && ctx.Err() == nil:
			o.cfg.Logger.Error("the key that secrets are sealed to could not be published; it is tried again", "key", newest.Public.ID(), "error", err)
		case err == nil && !o.cfg.SecretsKey.Has(there.ID):
			o.cfg.Logger.Warn("secrets are sealed to a newer key than this orchestrator holds; it can't take them out of errors", "key", there.ID)
		}
		return err == nil
	}
	if try() {
		return
	}
	later(func() {
		for !try() {
			select {
			case <-ctx.Done():
				return
			case <-time.After(publishAgain):
			}
		}
	})
}

const publishAgain = 10 * time.Second

// contextOf gives the out-of-band context that the tool of a step gets: for all of that step, which is why it is All.
func (r *run) contextOf(step int) wire.RunContext {
	return wire.RunContext{All: r.context.Of(r.plan.Steps[step].ID).Only(r.machine.Contract(step).Context.Passes)}
}

// cleaner takes the secrets of a run out of what its workers say of failures: a second line behind the workers, of which
// one may not do so. It is made when the first error comes, since most runs have none.
type cleaner struct {
	made bool
	r    *wire.Redactor
}

// redactor gives the run's; nil where it has no secrets.
func (dr *driver) redactor(r *run) *wire.Redactor {
	if r.clean.made {
		return r.clean.r
	}
	r.clean.made = true
	keys := dr.cfg.SecretsKey
	opened, err := r.context.Open(func(key, value string) (string, error) {
		return keys.Open(seal.About(r.id.Tenant, r.id.ID, key), value)
	})
	if err != nil {
		dr.log.Warn("the secrets of a run can't be taken out of its errors", "tenant", r.id.Tenant, "run", r.id.Plain(), "error", fault.As(err).Message)
		opened = r.context // what is not sealed of them can
	}
	all := []wire.Context{opened.All}
	for _, c := range opened.Steps {
		all = append(all, c)
	}
	r.clean.r = wire.NewRedactor(all...)
	return r.clean.r
}

// keyless are the workers that were heard of lately, by their registrations, and can't open what submitters seal.
type keyless struct {
	mu    sync.Mutex
	heard map[string]kv.Keyless // by worker
}

const (
	maxKeyless  = 100
	keylessTime = time.Hour // a worker that is idle registers again every half minute
)

// introduced notes whether a worker that registers a tool holds the key that this orchestrator has secrets sealed to, and gives what it
// is to be told.
func (s *service) introduced(m *nats.Msg, tool string) []fault.Problem {
	newest := s.o.cfg.SecretsKey.Newest()
	who, said := wire.ParseRegistration(m.Header)
	if newest == nil || !said {
		return nil
	}
	worker := text.Clip(who.Worker, maxWorkerName)
	if !s.keyless.note(kv.Keyless{Worker: worker, Tool: tool, Heard: time.Now().UTC()}, slices.Contains(who.Keys, newest.ID())) {
		return nil
	}
	return []fault.Problem{{
		Code: fault.Sealed, Message: "secrets are sealed to the key " + newest.ID() + ", which this worker does not hold: steps that bring some fail here",
		Hint: "start the workers of this tool with --secrets-key FILE, or worker.Config.SecretsKey",
	}}
}

// maxWorkerName bounds what is kept of a worker's name.
const maxWorkerName = 256

// note keeps a worker, or forgets it where it holds the key; it reports whether it lacks it.
func (k *keyless) note(w kv.Keyless, holds bool) (lacks bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if holds {
		delete(k.heard, w.Worker)
		return false
	}
	if k.heard == nil {
		k.heard = map[string]kv.Keyless{}
	}
	if _, known := k.heard[w.Worker]; known || len(k.heard) < maxKeyless {
		k.heard[w.Worker] = w
	}
	return true
}

// list gives those that were heard of lately, by their names, and forgets the others.
func (k *keyless) list(now time.Time) []kv.Keyless {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.heard, func(_ string, w kv.Keyless) bool { return now.Sub(w.Heard) > keylessTime })
	return slices.SortedFunc(maps.Values(k.heard), func(a, b kv.Keyless) int { return strings.Compare(a.Worker, b.Worker) })
}
