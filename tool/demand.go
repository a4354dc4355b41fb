package tool

import "time"

// Demand is how much of a tool is wanted now. How far the tool's consumer lags behind does not say that: of many steps
// that are ready, orchestrators hold most back.
type Demand struct {
	Tool string `json:"tool"`
	// Steps is how many are ready and not done with: Held, Queued and Leased together.
	Steps int `json:"steps"`
	// Held is how many orchestrators hold back, for want of room in the tool's window.
	Held int `json:"held"`
	// Queued is how many lie in the tool's stream and were given to no worker, Leased how many workers have, of at most
	// Limit.
	Queued int `json:"queued"`
	Leased int `json:"leased"`
	Limit  int `json:"limit"`
	// OldestMS is for how long the oldest of those has been ready that no worker has, in milliseconds; 0 where none is
	// known to wait. Of attempts after the first that lie in the stream nobody knows which were given to workers, so
	// they don't count for it. Where orchestrators have just changed it may be that of a step that a worker has.
	OldestMS int64 `json:"oldest_ms,omitempty"`
	// NoConsumer says that the tool's consumer is gone: what is queued and leased is not known then.
	NoConsumer bool `json:"no_consumer,omitempty"`
}

// Oldest returns OldestMS as a duration.
func (d *Demand) Oldest() time.Duration { return time.Duration(d.OldestMS) * time.Millisecond }

// Demands are those of some tools at about the same moment.
type Demands struct {
	Tools []Demand `json:"tools"`
	// Unsure are the partitions, of 64, for which no orchestrator answered in time, or several did, since they were
	// changing hands: what is held back of their runs is missing, or was counted twice. nil where all is known.
	Unsure []int `json:"unsure,omitempty"`
}

// Of returns the demand of a tool, nil where it was not asked for.
func (d *Demands) Of(tool string) *Demand {
	for i := range d.Tools {
		if d.Tools[i].Tool == tool {
			return &d.Tools[i]
		}
	}
	return nil
}
