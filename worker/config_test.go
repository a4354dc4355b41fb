package worker

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/wire"
)

func TestConfigDefaults(t *testing.T) {
	t.Parallel()
	c := Config{}.withDefaults()
	require.NoError(t, c.validate())
	require.Equal(t, 64, c.Slots)
	require.Equal(t, 5, c.MaxDeliveries)
	require.NotEqual(t, c.Name, Config{}.withDefaults().Name, "two workers of one host are told apart")
	kept := Config{Name: "a", Slots: 3, MaxDeliveries: 2, DrainTimeout: 1, ArgumentMemory: 1 << 30}.withDefaults()
	require.Equal(t, "a", kept.Name)
	require.Equal(t, 3, kept.Slots)
	require.Equal(t, 2, kept.MaxDeliveries)
}

func TestConfigInvalid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Config{
		"name too long":   {Name: strings.Repeat("x", 129)},
		"name not plain":  {Name: "a\r\nStepjet-Status: ok"},
		"no slots":        {Slots: -1},
		"too many slots":  {Slots: maxSlots + 1},
		"no deliveries":   {MaxDeliveries: -1},
		"negative drain":  {DrainTimeout: -1},
		"too little room": {ArgumentMemory: maxBlob - 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(new(nats.Conn), c)
			require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
		})
	}
	_, err := New(nil, Config{})
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
}

func TestInlineLimit(t *testing.T) {
	t.Parallel()
	require.Equal(t, wire.InlineLimit, inlineLimit(1<<20))
	require.Equal(t, wire.InlineLimit, inlineLimit(0), "a server that names no limit")
	require.Equal(t, 48<<10, inlineLimit(64<<10))
	require.Zero(t, inlineLimit(1<<10))
}
