package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/wire"
)

func TestWhichRunIsMeant(t *testing.T) {
	t.Parallel()
	for _, request := range []string{`{}`, `{ }`, `{"by":"ann"}`, ` {"by":"ann"}`, ``} {
		body := wire.For(17, []byte(request))
		n, err := wire.Meant(body)
		require.NoError(t, err)
		if request == "" || request[0] == ' ' {
			require.Zero(t, n, "none of ours looks so")
			continue
		}
		require.EqualValues(t, 17, n, "%s", body)
		require.Equal(t, request, string(wire.For(0, []byte(request))))
	}
	require.Equal(t, "ann", wire.ParseCancel(wire.For(17, wire.Cancel{By: "ann"}.Body())).By)
	for _, none := range []string{`{"by":"ann"}`, `{"generation":null}`, `[]`, `{"generation`, `5`} {
		n, err := wire.Meant([]byte(none))
		require.NoError(t, err, none)
		require.Zero(t, n)
	}
	for _, bad := range []string{`{"generation":"x"}`, `{"generation":-1}`, `{"generation":0}`, `{"generation":1.5}`, `{"generation":1e30}`} {
		_, err := wire.Meant([]byte(bad))
		require.Equal(t, fault.InvalidValue, fault.CodeOf(err), bad)
	}
}
