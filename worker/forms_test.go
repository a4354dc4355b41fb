package worker

import (
	"encoding/json"
	"flag"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/wire"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestClaimForm(t *testing.T) {
	t.Parallel()
	form := func(c claimBody) nats.Msg {
		b, err := json.Marshal(c)
		require.NoError(t, err)
		return nats.Msg{Header: wire.Versioned(), Data: b}
	}
	wiretest.RoundTrip(t, *update, "claim", form(claimBody{"n0nce", 12}), wiretest.Ignored, func(m nats.Msg) nats.Msg {
		var c claimBody
		require.NoError(t, json.Unmarshal(m.Data, &c))
		return form(c)
	})
}
