package kv_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/tool"
)

func TestSigns(t *testing.T) {
	t.Parallel()
	tool := tool.Registered{Name: "get", Shard: 3}
	const ack = "$JS.ACK.STEPS_3.get.2.17.5.1700000000000000000.0"
	for _, c := range []struct {
		subject, body string
		want          kv.Sign
	}{
		{ack, "", kv.Sign{Kind: kv.Acked, StreamSeq: 17, Delivered: 2}},
		{ack, "+ACK", kv.Sign{Kind: kv.Acked, StreamSeq: 17, Delivered: 2}},
		{ack, `-NAK {"delay": 5}`, kv.Sign{Kind: kv.Naked, StreamSeq: 17, Delivered: 2}},
		{ack, "+WPI", kv.Sign{Kind: kv.InProgress, StreamSeq: 17, Delivered: 2}},
		{"$JS.ACK.hub.HASH.STEPS_3.get.1.9.5.1700000000000000000.0", "+TERM why", kv.Sign{Kind: kv.Terminated, StreamSeq: 9, Delivered: 1}},
		{"$JS.API.CONSUMER.CREATE.STEPS_3.mine.x", "{}", kv.Sign{Kind: kv.Managed, Call: "CONSUMER.CREATE"}},
		{"$JS.API.CONSUMER.DURABLE.CREATE.STEPS_3.mine", "{}", kv.Sign{Kind: kv.Managed, Call: "CONSUMER.DURABLE.CREATE"}},
		{"$JS.API.CONSUMER.MSG.NEXT.STEPS_3.get", "", kv.Sign{Kind: kv.Pulled}},
		{"$JS.API.CONSUMER.MSG.NEXT.STEPS_3.get", "5", kv.Sign{Kind: kv.Pulled}},
		{"$JS.API.CONSUMER.MSG.NEXT.STEPS_3.get", `{"batch":1,"expires":9000000000,"idle_heartbeat":2000000000}`,
			kv.Sign{Kind: kv.Pulled, Expires: 9 * time.Second, Heartbeat: 2 * time.Second}},
		{"$JS.API.STREAM.PURGE.STEPS_3", "", kv.Sign{Kind: kv.Managed, Call: "STREAM.PURGE"}},
	} {
		got, ok := kv.ParseSign(tool, &nats.Msg{Subject: c.subject, Data: []byte(c.body)})
		require.True(t, ok, c.subject)
		require.Equal(t, c.want, got)
	}
	for _, subject := range []string{
		"$JS.API.CONSUMER.INFO.STEPS_3.get", "$JS.API.CONSUMER.MSG.NEXT.STEPS_3.other", "$JS.API.CONSUMER.CREATE.STEPS_30.x",
		"$JS.API.CONSUMER.CREATE.KV_tools.x", "$JS.ACK.STEPS_3.get.x", "$JS.API.STREAM.INFO.STEPS_3",
	} {
		_, ok := kv.ParseSign(tool, &nats.Msg{Subject: subject})
		require.False(t, ok, subject)
	}
	_, ok := kv.ParseSign(tool, &nats.Msg{Subject: "$JS.API.CONSUMER.MSG.NEXT.STEPS_3.get", Data: []byte(`{"batch":1,"no_wait":true}`)})
	require.False(t, ok, "it is answered at once")
}
