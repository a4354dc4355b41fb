package tool

import (
	"cmp"
	"slices"
	"strings"
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

// MaxContextKeys is the most keys that one filter may name.
const MaxContextKeys = 256

// ContextFilter says which keys of a run's out-of-band context leave for a tool's workers. It is the operator's to set,
// since a worker that may not be trusted with the context can't be asked what it should get.
type ContextFilter struct {
	Filter FilterMode `json:"filter,omitempty"`
	// Keys are those that AllowKeys and DenyKeys name: 1 to MaxContextKeys; the other filters have none.
	Keys []string `json:"keys,omitempty"`
}

// Passes reports whether a key may leave. A filter of no known kind lets nothing pass.
func (f ContextFilter) Passes(key string) bool {
	switch f.Filter {
	case "", PassThrough:
		return true
	case AllowKeys:
		return slices.Contains(f.Keys, key)
	case DenyKeys:
		return !slices.Contains(f.Keys, key)
	default: // none
	}
	return false
}

// Validate reports, as a plain error, what in the filter is not known or contradicts itself.
func (f ContextFilter) Validate() error {
	switch f.Filter {
	case "", PassThrough, PassNone:
		if len(f.Keys) > 0 {
			return badField("keys", "the filter %s names no keys", cmp.Or(f.Filter, PassThrough)).
				withHint("write allow-keys or deny-keys, or leave keys out")
		}
		return nil
	case AllowKeys, DenyKeys:
	default:
		return badField("filter", "%q is none of pass-through, none, allow-keys and deny-keys", clip(string(f.Filter)))
	}
	if len(f.Keys) == 0 || len(f.Keys) > MaxContextKeys {
		return badField("keys", "%s needs 1 to %d keys", f.Filter, MaxContextKeys).
			withHint("the filter that lets everything or nothing pass is pass-through or none")
	}
	for i, k := range f.Keys {
		if k == "" || strings.ContainsRune(k, ',') {
			return badField("keys", "%q is no key of a context", clip(k)).withHint("a key has no comma and isn't empty")
		}
		if slices.Contains(f.Keys[:i], k) {
			return badField("keys", "%q is named twice", clip(k))
		}
	}
	return nil
}

var contextFields = []string{"filter", "keys"}

// UnmarshalJSON reads {"filter","keys"}. Wrong values, contradictions and near misses of field names are errors.
func (f *ContextFilter) UnmarshalJSON(raw []byte) error {
	in, err := readFields(raw, contextFields...)
	if err != nil {
		return err
	}
	*f = ContextFilter{Filter: FilterMode(in.str("filter"))}
	in.decode("keys", &f.Keys, "an array of strings")
	if err := in.err(); err != nil {
		return err
	}
	return f.Validate()
}

// Bounds of the time that a call waits for its batch to fill.
const (
	// DefaultBatchWait is the longest wait of a batch that names none.
	DefaultBatchWait = 5 * time.Millisecond

	maxBatchWait = time.Minute
)
