package ui

import (
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/client"
)

// Config says how the page is served.
type Config struct {
	// Conn is what is read with: a user of the role observer. It stays the caller's own.
	Conn *nats.Conn
	// Actor opens the client that plans of a tenant are submitted, cancelled and tried again with; end closes it. nil: with
	// Conn.
	Actor func(ctx context.Context, tenant string) (c *client.Client, end func(), err error)
	// Approver opens the one that approvals of a tenant are given and refused with; nil: as Actor.
	Approver func(ctx context.Context, tenant string) (c *client.Client, end func(), err error)
	// Operator opens the connection that overrides of tools are set with, as an operator of the cluster; nil: Conn.
	Operator func(ctx context.Context) (nc *nats.Conn, end func(), err error)
	// Auth says who may do what; nil: everybody may do everything, which is for loopback addresses alone.
	Auth *Auth
	// Hosts are the names that the page is known by, without ports, beside those of loopback.
	Hosts []string
	// WaitsTooLong is for how long a step may wait for a worker until its run needs attention; 0: five minutes.
	WaitsTooLong time.Duration
	// Version is shown. Logger takes what happens unasked; nil: nothing is logged.
	Version string
	Logger  *slog.Logger
}
