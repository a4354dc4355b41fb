package tool

import (
	"slices"
	"time"
)

// FilterMode is what of a run's out-of-band context goes to a tool's workers.
type FilterMode string

// The filters. The empty one is PassThrough.
const (
	PassThrough FilterMode = "pass-through" // everything
	PassNone    FilterMode = "none"         // nothing
	AllowKeys   FilterMode = "allow-keys"   // only the keys named
	DenyKeys    FilterMode = "deny-keys"    // all but the keys named
)

// ContextFilter says which keys of a run's out-of-band context leave for a tool's workers. It is the operator's to set,
// since a worker that may not be trusted with the context can't be asked what it should get.
type ContextFilter struct {
	Filter FilterMode `json:"filter,omitempty"`
	Keys   []string   `json:"keys,omitempty"`
}

// Passes reports whether a key may leave.
func (f ContextFilter) Passes(key string) bool {
	switch f.Filter {
	case "", PassThrough:
		return true
	case AllowKeys:
		return slices.Contains(f.Keys, key)
	case DenyKeys:
		return !slices.Contains(f.Keys, key)
	}
	return false
}

// Bounds of the time that a call waits for its batch to fill.
const (
	// DefaultBatchWait is the longest wait of a batch that names none.
	DefaultBatchWait = 5 * time.Millisecond

	maxBatchWait = time.Minute
)
