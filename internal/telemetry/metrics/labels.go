package metrics

import "sync"

// few returns the values of one label that have series of their own: the first that come.
type few struct {
	mu    sync.RWMutex
	known map[string]bool
}

func newFew() *few { return &few{known: map[string]bool{}} }

// of returns the value, or Other.
func (f *few) of(value string) string {
	f.mu.RLock()
	known := f.known[value]
	f.mu.RUnlock()
	if known {
		return value
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.known[value] && len(f.known) >= mostOfLabel {
		return Other
	}
	f.known[value] = true
	return value
}

// labels are the names of a metric's labels: that of the tenant comes first, where tenants are told apart.
func labels(tenants bool, names ...string) []string {
	if tenants {
		return append([]string{"tenant"}, names...)
	}
	return names
}
