package tool

import "time"

// Worker is a live worker, as it says of itself: nobody has looked whether that is so. What is proven is its user,
// where users have the permissions that "stepjet acl" prints.
type Worker struct {
	// Name is the worker's own, as it stands in records. Two of different users may have the same.
	Name string `json:"worker"`
	// User is that of its connection; empty where its inboxes name none.
	User string `json:"user,omitempty"`
	// Heard is when it last said that it lives, Since when it came up, both by the clock of who listens.
	Heard time.Time `json:"heard"`
	Since time.Time `json:"since"`
	// Version is that of the Stepjet that it was built with; empty where it doesn't say.
	Version string `json:"version,omitempty"`
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	// Leaving says that it takes no more steps, and ends once those are done that it has.
	Leaving bool `json:"leaving,omitempty"`
	// Busy is how many executions it has at work, Done and Failed how many ended well and badly since it came up, of all
	// its tools together.
	Busy   int   `json:"busy"`
	Done   int64 `json:"done"`
	Failed int64 `json:"failed"`
	// Tools are those that it hosts, by name, or 256 of them: those at work and those that are held first. More is how
	// many others there are.
	Tools []WorkerTool `json:"tools"`
	More  int          `json:"more,omitempty"`
	// Tenants are those that may use its tools, 32 at most, where each of the tools is for some tenants alone.
	Tenants []string `json:"tenants,omitempty"`
}

// WorkerTool is one tool of a worker.
type WorkerTool struct {
	Tool string `json:"tool"`
	// Slots is how many executions it takes at once, Busy how many of them are taken.
	Slots  int   `json:"slots"`
	Busy   int   `json:"busy,omitempty"`
	Done   int64 `json:"done,omitempty"`
	Failed int64 `json:"failed,omitempty"`
	// Held says that the worker takes no steps of it now: its gate is closed.
	Held bool `json:"held,omitempty"`
	// Why says why it is held, where the worker tells.
	Why string `json:"why,omitempty"`
}

// Of returns what the worker says of a tool; nil where it names none of that name.
func (w *Worker) Of(name string) *WorkerTool {
	for i := range w.Tools {
		if w.Tools[i].Tool == name {
			return &w.Tools[i]
		}
	}
	return nil
}
