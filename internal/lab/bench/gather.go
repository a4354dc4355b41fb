package bench

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
)

// gather moves the leaders of the floor's streams and consumers, or of all others, to the node that the programs are
// connected to, so that neither side is lucky.
func (w *world) gather(floor bool) error {
	if w.Layout.Replicas() == 1 {
		return nil
	}
	node := w.Conn().ConnectedServerName()
	streams := w.JS.ListStreams(w.Context())
	for s := range streams.Info() {
		if floorOwn(s.Config.Name) != floor {
			continue
		}
		stream, err := w.JS.Stream(w.Context(), s.Config.Name)
		if err != nil {
			return err
		}
		if err := w.lead("STREAM.LEADER.STEPDOWN."+s.Config.Name, node, func() (*jetstream.ClusterInfo, error) {
			info, err := stream.Info(w.Context())
			if err != nil {
				return nil, err
			}
			return info.Cluster, nil
		}); err != nil {
			return err
		}
		for c := range stream.ListConsumers(w.Context()).Info() {
			if c.Config.Durable == "" {
				continue
			}
			if err := w.lead("CONSUMER.LEADER.STEPDOWN."+s.Config.Name+"."+c.Name, node, func() (*jetstream.ClusterInfo, error) {
				consumer, err := stream.Consumer(w.Context(), c.Name)
				if err != nil {
					return nil, err
				}
				return consumer.CachedInfo().Cluster, nil
			}); err != nil {
				return err
			}
		}
	}
	return streams.Err()
}

// lead asks a leader to step down in favour of a node, until that leads.
func (w *world) lead(request, node string, look func() (*jetstream.ClusterInfo, error)) error {
	body := []byte(`{"placement":{"preferred":"` + node + `"}}`)
	for until := time.Now().Add(time.Minute); ; {
		if at, err := look(); err == nil && at != nil && at.Leader == node { // none answers during an election
			return nil
		}
		if _, err := w.Conn().RequestWithContext(w.Context(), jetstream.DefaultAPIPrefix+request, body); err != nil {
			return err
		}
		if err := wait(w.Context(), 250*time.Millisecond, until); err != nil {
			return fault.Wrap(fault.CodeOf(err), err, "gathering leaders: "+request)
		}
	}
}
