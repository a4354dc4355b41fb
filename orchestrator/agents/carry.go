package agents

import (
	"github.com/stepjet/stepjet/agent/parts"
	"github.com/stepjet/stepjet/agent/request"
	"github.com/stepjet/stepjet/wire"
)

// What a part may have in bytes to ride in the request: for each record of its round, so that what is written of a round stays
// within its results, twice, and 2 KiB a record; and in all, since an owner keeps what it may have to send again.
const (
	carriedForEach = 768
	carriedMost    = 32 << 10
)

// Carry puts the last part into the request, where it is small: whoever makes the same request does, whatever is stored. It returns
// that part where it is not known to be stored: it has to be before the next request is sent, as all others before this one. Of an
// attempt behind the first it is among these: a worker that knows of no part in a request has failed, and finds it where it looks.
func (a *Asked) Carry(attempt int) (late *Asked) {
	if a.last == nil {
		return nil
	}
	p := a.last.part.Bytes
	if len(p) > min(a.last.records*carriedForEach, carriedMost) {
		return nil
	}
	with := parts.Carry(a.Request, p)
	if len(with) > wire.InlineLimit { // it would lie in a blob
		return nil
	}
	a.Request = with
	a.Past.last = a.last // of this request alone, until its parts are stored
	n := len(a.Parts)
	if n == 0 || attempt > 1 {
		return nil
	}
	late = &Asked{Parts: a.Parts[n-1:], Past: a.Past, fresh: a.fresh}
	a.Parts, a.Past = a.Parts[:n-1:n-1], nil
	return late
}

// Keep stores the parts: keep stores one, unless it was stored before, and reports whether it lies under its name. fresh says that
// it was not, most likely: where there is one alone, all before it are past, and its round ended just now. same is false where
// something else does, of somebody else or of another version: that stays, and the request is to be sent whole.
func (a *Asked) Keep(keep func(p request.Part, fresh bool) (same bool, err error)) (same bool, err error) {
	for _, p := range a.Parts {
		if same, err = keep(p, a.fresh); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}
