package daemon

import (
	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
)

// Connected makes the check of the health endpoint: a program without a server can't work.
func Connected(nc *nats.Conn) func() error {
	return func() error {
		if nc.IsConnected() {
			return nil
		}
		return fault.New(fault.NoConnection, "not connected to NATS")
	}
}
