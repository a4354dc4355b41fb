package wire

import (
	"encoding/json"
	"strconv"
)

// Member is what a live orchestrator says in its key, anew with each renewal.
type Member struct {
	// Serves has a bit for each partition whose runs the member has at hand: whoever owned it before may let go of it.
	Serves uint64
	// Leaving says that it is about to end: it takes nothing over any more, and goes on with what it has until others
	// serve that, or for a few seconds.
	Leaving bool
	Pulse   string // the subject it listens on for as long as it is connected
	Marks   []Mark
	Tenants string // which declared tenants it knows, as a digest
	// Knows are the needs that it knows. A member of before there were any says nothing.
	Knows []string
	// Version is the Stepjet that it is, for people to compare. One of before says nothing.
	Version string
}

// Mark says of some partitions of a ledger shard that every record below a sequence belongs to a run that is over and
// past its grace, or to none; and below another that it belongs to a run that is over, so that nothing is left to be done
// for it but to purge it. Records are never changed and sequences only grow, so a mark is true for ever, whoever
// owns the partitions later, with one exception: a server that loses power may come back with the end of its file
// missing, and then gives the same sequences once more. So a mark names the life of the ledger that it is about, and
// holds for that alone.
type Mark struct {
	Shard      int
	Life       string // of the ledger shard: since its server started, or in a cluster its leader was elected
	Partitions uint64 // a bit for each
	Below      uint64 // sequence of the first record that may have to stay; 0 where that is not known
	Over       uint64 // of the first whose run may go on; 0 where that is not known, as of a member that is older than that
}

// servesAll is what a member is taken to serve that does not tell, since it is older than that.
const servesAll = ^uint64(0)

// memberBody is a member's key as JSON. Sets of partitions are hexadecimal: numbers of 64 bits are none in JSON.
type memberBody struct {
	Serves  string     `json:"serves"`
	Leaving bool       `json:"leaving,omitempty"`
	Pulse   string     `json:"pulse,omitempty"`
	Marks   []markBody `json:"marks,omitempty"`
	Tenants string     `json:"tenants,omitempty"`
	Knows   []string   `json:"knows,omitempty"`
	Version string     `json:"version,omitempty"`
}

type markBody struct {
	Shard      int    `json:"shard"`
	Life       string `json:"life"`
	Partitions string `json:"partitions"`
	Below      uint64 `json:"below"`
	Over       uint64 `json:"over,omitempty"`
}

// Body writes what a member says. Its headers are Versioned, with the time to live that the store adds.
func (m Member) Body() []byte {
	b := memberBody{Serves: strconv.FormatUint(m.Serves, 16), Leaving: m.Leaving, Pulse: m.Pulse, Tenants: m.Tenants, Knows: m.Knows, Version: m.Version}
	for _, x := range m.Marks {
		b.Marks = append(b.Marks, markBody{x.Shard, x.Life, strconv.FormatUint(x.Partitions, 16), x.Below, x.Over})
	}
	body, _ := json.Marshal(b) // strings and numbers: it can't fail
	return body
}

// ParseMember reads what a member says. It never fails, since that the key is there says that the member lives: of a
// set of partitions that can't be read, it serves all, and marks none.
func ParseMember(body []byte) Member {
	var b memberBody
	_ = json.Unmarshal(body, &b) // a member of before the first of these fields writes nothing
	m := Member{Serves: servesAll, Leaving: b.Leaving, Pulse: b.Pulse, Tenants: b.Tenants, Knows: b.Knows, Version: shown(b.Version, 64)}
	if set, err := strconv.ParseUint(b.Serves, 16, 64); err == nil {
		m.Serves = set
	}
	for _, x := range b.Marks {
		if set, err := strconv.ParseUint(x.Partitions, 16, 64); err == nil {
			m.Marks = append(m.Marks, Mark{x.Shard, x.Life, set, x.Below, x.Over})
		}
	}
	return m
}
