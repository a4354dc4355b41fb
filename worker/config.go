package worker

import (
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nuid"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/observe"
	"github.com/stepjet/stepjet/seal"
	"github.com/stepjet/stepjet/subjects"
)

// Defaults and bounds of Config.
const (
	DefaultSlots          = 64
	DefaultMaxDeliveries  = 5
	DefaultDrainTimeout   = 30 * time.Second
	DefaultArgumentMemory = 256 << 20

	maxSlots = 1 << 16
	maxName  = subjects.MaxWorker
)

// Config is how a worker behaves. The zero value is ready for use.
type Config struct {
	// Name tells this worker from others in records and logs: at most 128 printable bytes. Default: the host's name and
	// a random part.
	Name string
	// Slots is how many executions of each tool run at once in this worker, 1 to 65536. Default 64. Option Slots
	// overrides it for one tool. The fan-out limit of the tool's contract holds over all workers besides.
	Slots int
	// MaxDeliveries is how often one attempt may be handed out, because its worker died each time, before it is
	// recorded as worker_lost. Default 5.
	MaxDeliveries int
	// DrainTimeout is how long Run lets handlers finish after its context has ended, before it cancels them and leaves
	// their steps to other workers. Default 30 s.
	DrainTimeout time.Duration
	// ArgumentMemory bounds, in bytes, the large arguments (those over 256 KiB) held at once by all executions; steps
	// that don't fit wait, with their leases kept. At least 64 MiB, which is what one step may have. Default 256 MiB.
	ArgumentMemory int64
	// SecretsKey are the keys that open the secrets of runs which were submitted sealed. A step with such secrets fails
	// without them. Load a file with seal.Load; nil: none.
	SecretsKey Keys
	// Logger takes what the worker has to say. Default: nothing.
	Logger *slog.Logger
	// Observer is told of executions; package observe says what it may do. nil: nobody is told, which costs nothing.
	Observer observe.Observer
}

// withDefaults fills in what was not given.
func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = defaultName()
	}
	if c.SecretsKey == nil {
		c.SecretsKey = (*seal.Keyring)(nil) // which opens nothing, and says so
	}
	if c.Slots == 0 {
		c.Slots = DefaultSlots
	}
	if c.MaxDeliveries == 0 {
		c.MaxDeliveries = DefaultMaxDeliveries
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = DefaultDrainTimeout
	}
	if c.ArgumentMemory == 0 {
		c.ArgumentMemory = DefaultArgumentMemory
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func defaultName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "worker"
	}
	if len(host) > 64 {
		host = host[:64]
	}
	return strings.ToValidUTF8(host, "_") + "-" + nuid.Next()[16:]
}

// validate reports the first field that can't be used; the error has code invalid_config.
func (c Config) validate() error {
	switch {
	case !subjects.ValidWorker(c.Name):
		return fault.New(fault.InvalidConfig, "the worker's name %q is longer than %d bytes or not printable", c.Name,
			maxName)
	case c.Slots < 1 || c.Slots > maxSlots:
		return fault.New(fault.InvalidConfig, "a worker has 1 to %d slots for a tool, not %d", maxSlots, c.Slots)
	case c.MaxDeliveries < 1:
		return fault.New(fault.InvalidConfig, "an attempt is delivered at least once, not %d times", c.MaxDeliveries)
	case c.DrainTimeout < 0:
		return fault.New(fault.InvalidConfig, "the drain timeout %v is negative", c.DrainTimeout)
	case c.ArgumentMemory < maxBlob:
		return fault.New(fault.InvalidConfig, "the memory for arguments is %d bytes, less than the %d of one step",
			c.ArgumentMemory, maxBlob)
	}
	return nil
}
