package wire_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/wire"
)

func TestMemberForm(t *testing.T) {
	t.Parallel()
	form := func(m wire.Member) nats.Msg { return nats.Msg{Header: wire.Versioned(), Data: m.Body()} }
	recode := func(m nats.Msg) nats.Msg { return form(wire.ParseMember(m.Data)) }
	m := form(wire.Member{Serves: 6, Leaving: true, Knows: wire.Ours().Names()})
	golden(t, "member", m.Header, m.Data, wiretest.Ignored, recode)
	full := wire.Member{
		Serves: 1<<63 | 5, Pulse: "_INBOX.x", Tenants: "ab12", Knows: []string{"language-2"}, Version: "v0.3.0",
		Marks: []wire.Mark{{Shard: 1, Life: "L 2026", Partitions: 1<<63 | 2, Below: 900, Over: 1000}, {Life: "M", Partitions: 1, Below: 7}, {Life: "M", Partitions: 4, Over: 9}},
	}
	m = form(full)
	golden(t, "member_full", m.Header, m.Data, wiretest.Ignored, recode)
	require.Equal(t, full, wire.ParseMember(m.Data))
}

// That a member's key is there says that it lives, whatever it says: one of before serves all that it owns.
func TestForeignMembers(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "not json", "{}", `{"serves":6}`, `{"marks":[{"partitions":"x","below":7}]}`} {
		require.Equal(t, wire.Member{Serves: ^uint64(0)}, wire.ParseMember([]byte(body)), body)
	}
}
