package wire_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

func TestToldForms(t *testing.T) {
	t.Parallel()
	r := subjects.NewRun("acme", "order-42")
	h, body := wire.Told{Error: fault.New(fault.ConditionFailed, "it can't be read")}.Message()
	golden(t, "told_if", h, body, wiretest.Ignored, func(m nats.Msg) nats.Msg {
		h, body := wire.ParseTold(m.Data).Message()
		return nats.Msg{Header: h, Data: body}
	})
	recode := func(m nats.Msg) nats.Msg {
		h, body := wire.ParseToldValue(m.Data, r, 17, "blobs-acme", 1<<20).Message()
		return nats.Msg{Header: h, Data: body}
	}
	h, body = wire.ToldValue{Value: []byte(`{"total": 1.50}`)}.Message()
	golden(t, "told_value", h, body, wiretest.Ignored, recode)
	own := &outcome.Handle{Name: "acme/order-42/17/=value/X1", Bucket: "blobs-acme", Size: 300_000, SHA256: "ab12", Checked: true}
	h, body = wire.ToldValue{Handle: own}.Message()
	golden(t, "told_value_handle", h, body, wiretest.Ignored, recode)
	require.Equal(t, "null", string(wire.ParseToldValue([]byte(`{"value":null}`), r, 17, "", 1).Value))
}

// What nobody of ours wrote fails the step, and brings no other blob into an outcome.
func TestAForgedToldValue(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"no JSON":            `nope`,
		"nothing":            `{}`,
		"another run's blob": `{"handle":{"name":"acme/other/17/=value/X1","size":1}}`,
		"a result's blob":    `{"handle":{"name":"acme/order-42/17/a/1/X1","size":1}}`,
		"a slash":            `{"handle":{"name":"acme/order-42/17/=value/X1/2","size":1}}`,
		"another bucket":     `{"handle":{"name":"acme/order-42/17/=value/X1","bucket":"blobs-other","size":1}}`,
		"too much":           `{"handle":{"name":"acme/order-42/17/=value/X1","size":9999999}}`,
	} {
		told := wire.ParseToldValue([]byte(body), subjects.NewRun("acme", "order-42"), 17, "blobs-acme", 1<<20)
		require.Nil(t, told.Handle, name)
		require.Equal(t, fault.ConditionFailed, told.Error.Code, name)
	}
}
