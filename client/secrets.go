package client

import (
	"context"
	"sync"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/seal"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// sealing finds the key that secrets are sealed to.
type sealing struct {
	pinned *seal.Public // given by the user; nil: the one that is published

	mu    sync.Mutex
	key   *seal.Public // nil: none is published
	until time.Time    // how long that is believed
}

// keyAge is how long a published key is used without looking again. Old keys open what was sealed to them for days.
const keyAge = 10 * time.Second

// SealingKey returns the id of the key that this client seals secrets to: that of Config.SealTo, else the one that an
// orchestrator has published. It is empty where there is none, and secrets lie in the ledger and the step queues as
// they are. Errors: those of reading the registry.
func (c *Client) SealingKey(ctx context.Context) (id string, err error) {
	key, err := c.sealing.find(ctx, c.store.Registry)
	if key == nil || err != nil {
		return "", err
	}
	return key.ID(), nil
}

// find returns the key; nil where there is none.
func (s *sealing) find(ctx context.Context, published *kv.Registry) (*seal.Public, error) {
	if s.pinned != nil {
		return s.pinned, nil
	}
	s.mu.Lock()
	key, fresh := s.key, time.Now().Before(s.until)
	s.mu.Unlock()
	if fresh {
		return key, nil
	}
	there, err := published.SealingKey(ctx)
	switch {
	case fault.CodeOf(err) == fault.NotFound:
		key = nil
	case err != nil:
		return nil, err // to send secrets open because a key can't be read just now would be wrong
	default:
		if key, err = seal.ParsePublic(there.Public); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key, s.until = key, time.Now().Add(keyAge)
	return key, nil
}

// sealed returns a run's context with its secrets sealed, where there is a key.
func (c *Client) sealed(ctx context.Context, name subjects.Run, r wire.RunContext) (wire.RunContext, error) {
	if !r.HasSecrets() {
		return r, nil
	}
	key, err := c.sealing.find(ctx, c.store.Registry)
	if key == nil || err != nil {
		return r, err
	}
	return r.Seal(func(k, value string) (string, error) { return key.Seal(seal.About(name.Tenant, name.ID, k), value) })
}
