package kv

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
)

// watch looks after the cursor until it ends: it owns all that is not a message.
func (c *Cursor) watch() {
	defer c.end()
	status := c.s.nc.StatusChanged(nats.CONNECTED)
	defer c.s.nc.RemoveStatusListener(status)
	defer c.hearElections()()
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	c.settled()
	for silent, need := 0, nothing; ; {
		select {
		case <-c.ctx.Done():
			return
		case _, open := <-status:
			if !open { // closed for good; the store's owner ends the cursor
				status = nil
				continue
			}
			need = max(need, aCheck)
		case <-c.elected:
			need = max(need, aCheck)
		case <-c.broken:
			need = aRestart
		case <-ticker.C:
			if silent = c.silence(silent); silent >= deadTicks {
				need = aRestart
			}
		}
		if need == nothing {
			continue
		}
		switch err := c.attend(need); {
		case err == nil:
			silent, need = 0, nothing
		case c.ctx.Err() == nil && !transient(err):
			c.lose(err)
			return
		} // else the next tick tries again
	}
}

// What a cursor needs.
const (
	nothing  = iota
	aCheck   // whether what was read still stands
	aRestart // and another consumer
)

func (c *Cursor) attend(need int) error {
	if need == aRestart {
		return c.restart()
	}
	return c.check(c.ctx)
}

// advisoryElected is where a cluster tells that a stream has another leader.
const advisoryElected = "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED."

// hearElections notes when the stream of a cluster gets another leader. Where that can't be heard, what goes wrong with
// it shows as a gap or as silence.
func (c *Cursor) hearElections() (stop func()) {
	if c.home.leader == "" {
		return func() {}
	}
	sub, err := c.s.nc.Subscribe(advisoryElected+c.stream, func(*nats.Msg) { c.Check() })
	if err != nil {
		return func() {}
	}
	return func() { _ = sub.Unsubscribe() } // fails only when the connection is closed
}

// settled tells that the snapshot is complete where the consumer had nothing to send for it.
func (c *Cursor) settled() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pos.get() >= c.target && len(c.awaited) == 0 && c.ctx.Err() == nil {
		c.catchUp(c.target)
	}
}

// silence counts the ticks in which nothing arrived and nothing waits to be handed on.
func (c *Cursor) silence(ticks int) int {
	if c.alive.Swap(false) || !c.s.nc.IsConnected() {
		return 0
	}
	if !c.mu.TryLock() { // a callback is running
		return 0
	}
	defer c.mu.Unlock()
	if waiting, _, err := c.sub.Pending(); err == nil && waiting > 0 {
		return 0
	}
	return ticks + 1
}

// restart makes a new consumer behind the position, if that is still sound.
func (c *Cursor) restart() error {
	if err := c.check(c.ctx); err != nil {
		return err
	}
	old := c.consumer()
	if err := c.s.retry(c.ctx, c.subscribe); err != nil {
		return err // the old one stays: it is the proof that check needs
	}
	c.drop(old)
	return nil
}

func (c *Cursor) consumer() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.name
}

// check finds out whether what was read is still what the stream holds. The consumer is proof that the server has not
// restarted.
func (c *Cursor) check(ctx context.Context) error {
	at := c.pos.get() // before the stream's end is asked for, since both go on
	info, err := c.s.streamInfo(ctx, c.stream, "")
	if err != nil {
		return err
	}
	now := home{c.s.nc.ConnectedServerId(), info.leader()}
	if now.server == "" || now.leader == "" && c.home.leader != "" {
		return nats.ErrDisconnected // once more, or no leader is elected: ask again later
	}
	if now.server != c.home.server {
		return lostFault("the connection is to another server, or it was restarted")
	}
	if now.leader != c.home.leader {
		return lostFault("the stream has another leader")
	}
	if info.State.LastSeq < at {
		return lostFault(fmt.Sprintf("the stream ends at %d, but was read up to %d", info.State.LastSeq, at))
	}
	if err := c.checkConsumer(ctx); err != nil {
		return err
	}
	c.live(now.server, info) // the leader may have been elected again meanwhile; what was read stands
	return nil
}

// consumerPatience is how long nobody may answer for the consumer when the stream's leader does.
const consumerPatience = 2 * time.Second

// checkConsumer asks for the consumer. In a cluster it may live on another server than the stream's leader; where that
// server fell silent there is no telling how long it will be silent.
func (c *Cursor) checkConsumer(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, consumerPatience)
	defer cancel()
	err := c.s.ask(limited, apiPrefix+"CONSUMER.INFO."+c.stream+"."+c.consumer(), struct{}{}, &struct{}{})
	switch {
	case apiCode(err) == codeConsumerNotFound:
		return lostFault("the server has forgotten its consumer")
	case err != nil && limited.Err() != nil && ctx.Err() == nil && c.s.nc.IsConnected():
		return lostFault("nobody answers for its consumer")
	}
	return err
}

func lostFault(why string) *fault.Error {
	return fault.New(fault.NotReady, "what was read may not be what is stored: %s", why).WithHint("read it again from the start")
}

// drop removes a consumer, as a courtesy to the server, which would do so itself in a while.
func (c *Cursor) drop(name string) {
	if !c.s.nc.IsConnected() {
		return
	}
	_, _ = c.s.request(context.Background(), time.Second, apiPrefix+"CONSUMER.DELETE."+c.stream+"."+name, nil)
}

// lose ends the cursor and says why.
func (c *Cursor) lose(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return
	}
	f := Fault(err)
	c.cancel(f)
	if c.lost != nil {
		c.lost(f)
	}
}

func (c *Cursor) end() {
	c.cancel(errStopped())
	c.mu.Lock()
	c.epoch++
	_ = c.sub.Unsubscribe() // fails only when the connection is closed
	name := c.name
	c.mu.Unlock()
	c.drop(name)
}
