package machine

import (
	"math"
	"time"
)

// instant is a time in a third of a time.Time's room, in nanoseconds since 1970; 0 for none. There is a handful for
// each step of each run that waits.
type instant int64

// latest is the last second that an instant can tell; what comes later counts as that.
const latest = math.MaxInt64 / int64(time.Second)

func instantOf(t time.Time) instant {
	switch s := t.Unix(); {
	case t.IsZero():
		return 0
	case s >= latest:
		return instant(latest * int64(time.Second))
	case s <= -latest:
		return instant(-latest * int64(time.Second))
	}
	return instant(t.UnixNano())
}

// time returns the instant in UTC.
func (i instant) time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(i)).UTC()
}
