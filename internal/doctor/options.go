package doctor

import (
	"time"

	"github.com/stepjet/stepjet/kv"
)

// Sync is when the server flushes to the disk what it has acknowledged.
type Sync string

// The kinds of Sync.
const (
	SyncUnknown Sync = ""
	// SyncInterval flushes every now and then, every two minutes unless set otherwise: a killed server loses nothing, a
	// machine without power what came since.
	SyncInterval Sync = "interval"
	// SyncAlways flushes before every acknowledgement.
	SyncAlways Sync = "always"
)

// Options say what an examination compares with, and whether it mends.
type Options struct {
	// Want is how things should be set up. Zero fields ask for nothing: what exists is taken as it is, and the
	// defaults of Config count for what is absent.
	Want kv.Config
	// Sync is what the operator asks of the server's flushing; SyncUnknown asks for nothing.
	Sync Sync
	// Seen is what is known of the server's flushing, from its monitoring. JetStream's API does not tell it.
	Seen Sync
	// Ailing is what the servers' monitoring says is wrong with them, such as a stream that could not be written to.
	Ailing []string
	// Mend does what each Fixable finding says.
	Mend bool
	// SetUp looks at what lies in the account alone, at no process and no run; and it leaves what a version of before
	// still needs. So it may be mended before the first process is upgraded.
	SetUp bool
	// Stale is how long an unfinished run may go without a record before it is looked into; 0: one minute.
	Stale time.Duration
	// HoldsKey reports whether the user's key file holds a key that secrets are sealed to; nil: no file was named.
	HoldsKey func(id string) bool
	// Tenant is the one under which the way of plans is probed; empty: "default". Nothing is stored.
	Tenant string
}
