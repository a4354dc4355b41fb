package wire_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/wire"
)

func TestDemandForms(t *testing.T) {
	t.Parallel()
	asked := wire.DemandRequest{Tools: map[string]wire.DemandSince{"search": {Given: 1187, Behind: 128}, "fetch": {}}}
	golden(t, "demand_request", wire.Versioned(), asked.Body(), wiretest.Ignored, func(m nats.Msg) nats.Msg {
		read, err := wire.ParseDemandRequest(m.Data)
		require.NoError(t, err)
		require.Equal(t, asked, read)
		return nats.Msg{Header: wire.Versioned(), Data: read.Body()}
	})
	looked := wire.QueuesRequest{Tools: map[string]int{"search": 0, "fetch": 3}}
	golden(t, "queues_request", wire.Versioned(), looked.Body(), wiretest.Ignored, func(m nats.Msg) nats.Msg {
		read, err := wire.ParseQueuesRequest(m.Data)
		require.NoError(t, err)
		require.Equal(t, looked, read)
		return nats.Msg{Header: wire.Versioned(), Data: read.Body()}
	})
	lies := wire.QueuesAnswer{Tools: map[string]wire.Queue{"search": {Limit: 1000, Leased: 1000, Behind: 250, Given: 1187}}}
	golden(t, "queues_answer", wire.Versioned(), lies.Body(), wiretest.Ignored, func(m nats.Msg) nats.Msg {
		var read wire.QueuesAnswer
		require.NoError(t, json.Unmarshal(m.Data, &read))
		require.Equal(t, lies, read)
		return nats.Msg{Header: wire.Versioned(), Data: read.Body()}
	})
	told := wire.DemandAnswer{Serves: 0xff00000000000003, Unsure: 4, Tools: map[string]wire.DemandNow{"search": {Held: 3750, OldestMS: 61_250}, "fetch": {Held: 1}}}
	golden(t, "demand_answer", wire.Versioned(), told.Body(), wiretest.Ignored, func(m nats.Msg) nats.Msg {
		read := wire.ParseDemandAnswer(m.Data)
		require.Equal(t, told, read)
		return nats.Msg{Header: wire.Versioned(), Data: read.Body()}
	})
}

func TestWaitingForms(t *testing.T) {
	t.Parallel()
	asked := wire.DemandRequest{Tools: map[string]wire.DemandSince{"search": {Given: 1187, Behind: 128, Leased: 4}}, OverMS: 300_000}
	golden(t, "waiting_request", wire.Versioned(), asked.Body(), wiretest.Ignored, func(m nats.Msg) nats.Msg {
		read, err := wire.ParseDemandRequest(m.Data)
		require.NoError(t, err)
		require.Equal(t, asked, read)
		return nats.Msg{Header: wire.Versioned(), Data: read.Body()}
	})
	told := wire.DemandAnswer{
		Serves: 3, Tools: map[string]wire.DemandNow{"search": {Held: 3750, OldestMS: 361_250}},
		Runs: []wire.WaitingRun{{Run: "acme.order=2042", Step: "look/each=3", Tool: "search", MS: 361_250}}, More: 12,
	}
	golden(t, "waiting_answer", wire.Versioned(), told.Body(), wiretest.Ignored, func(m nats.Msg) nats.Msg {
		read := wire.ParseDemandAnswer(m.Data)
		require.Equal(t, told, read)
		return nats.Msg{Header: wire.Versioned(), Data: read.Body()}
	})
}

func TestWhatIsNoDemand(t *testing.T) {
	t.Parallel()
	_, err := wire.ParseDemandRequest([]byte(`["search"]`))
	require.Equal(t, fault.InvalidValue, fault.CodeOf(err))
	most := wire.DemandRequest{Tools: map[string]wire.DemandSince{}}
	for i := range wire.MaxDemandTools {
		most.Tools[fmt.Sprint(i)] = wire.DemandSince{}
	}
	_, err = wire.ParseDemandRequest(most.Body())
	require.NoError(t, err)
	most.Tools["more"] = wire.DemandSince{}
	_, err = wire.ParseDemandRequest(most.Body())
	require.Equal(t, fault.LimitExceeded, fault.CodeOf(err))
	_, err = wire.ParseQueuesRequest([]byte(`{"tools":{"search":"0"}}`))
	require.Equal(t, fault.InvalidValue, fault.CodeOf(err))
	for _, body := range []string{``, `{`, `{"serves":"xyz","tools":{"a":{"held":1}}}`, `{"tools":{"a":{"held":1}}}`} {
		require.Zero(t, wire.ParseDemandAnswer([]byte(body)), body)
	}
}
