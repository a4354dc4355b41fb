package wire_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// sealedValue returns a value of the right form, from the vectors of the protocol.
func sealedValue(t testing.TB) string {
	t.Helper()
	raw, err := os.ReadFile("testdata/sealed.json")
	require.NoError(t, err)
	var all []struct{ Sealed string }
	require.NoError(t, json.Unmarshal(raw, &all))
	return all[0].Sealed
}

// A message with a sealed value says so in its version: whoever does not know of them leaves it alone. Any other is as
// it always was.
func TestSealedContextRaisesTheVersion(t *testing.T) {
	t.Parallel()
	value := sealedValue(t)
	plain := contextOf(t, map[string]string{"user": "ann", "token": "s3cr3t"}, "token")
	sealed, err := plain.Seal(func(k, v string) (string, error) {
		require.Equal(t, "token=s3cr3t", k+"="+v)
		return value, nil
	})
	require.NoError(t, err)
	require.True(t, sealed.Sealed("token") && sealed.Secret("token") && sealed.AnySealed())
	require.False(t, sealed.Sealed("user") || plain.AnySealed())
	require.NotContains(t, sealed.String(), value)

	h := wire.Step{Result: "r", Key: "k", Attempt: 1, Context: sealed}.Header()
	require.Equal(t, "2", h[subjects.HeaderVersion][0])
	require.False(t, wire.KindEvent.Known(h))
	require.True(t, wire.KindStep.Known(h))
	back, err := wire.ParseStep(h)
	require.NoError(t, err)
	require.Equal(t, sealed, back.Context)
	open := sealed.Only(func(k string) bool { return k == "user" })
	require.Equal(t, "1", wire.Step{Result: "r", Key: "k", Attempt: 1, Context: open}.Header()[subjects.HeaderVersion][0], "a step without them is for all workers")
	require.False(t, wire.KindStep.Known(nats.Header{subjects.HeaderVersion: {"5"}}))

	r := wire.RunContext{All: open, Steps: map[string]wire.Context{"s": sealed}}
	plan := nats.Header{}
	wire.Plan{Context: r}.Set(plan)
	require.Equal(t, "2", plan[subjects.HeaderVersion][0])
	read, err := wire.ParsePlan(plan)
	require.NoError(t, err)
	again := read.Context
	require.Equal(t, r, again)
	require.Equal(t, "1", wire.Versioned()[subjects.HeaderVersion][0])

	opened, err := again.Open(func(k, v string) (string, error) { require.Equal(t, value, v); return "s3cr3t", nil })
	require.NoError(t, err)
	require.Equal(t, plain, opened.Of("s"))
	require.Nil(t, wire.NewRedactor(sealed.Only(sealed.Sealed)), "what is sealed is nothing to look for")
	_, err = again.Open(func(string, string) (string, error) { return "", errors.New("no") })
	require.Error(t, err)
}

func TestSealedFormAndSize(t *testing.T) {
	t.Parallel()
	value := sealedValue(t)
	header := func(values map[string]string, sealed string) nats.Header {
		b, err := json.Marshal(values)
		require.NoError(t, err)
		return nats.Header{subjects.HeaderContext: {string(b)}, subjects.HeaderContextSealed: {sealed}}
	}
	for name, bad := range map[string]string{
		"plain": "s3cr3t", "no id": value[17:], "short id": value[1:], "upper case": strings.ToUpper(value[:16]) + value[16:], "not base64": value[:17] + "s3cr3t!",
		"short": value[:40], "padded": value + "==", "empty": "",
	} {
		_, err := wire.ContextOf(header(map[string]string{"token": bad}, "token"))
		require.Equal(t, fault.InvalidValue, fault.CodeOf(err), name)
		require.NotContains(t, err.Error(), "s3cr3t")
	}
	c, err := wire.ContextOf(header(map[string]string{"token": value}, "token, other"))
	require.NoError(t, err)
	require.True(t, c.Secret("token"), "a sealed value is a secret, whatever else is said")

	fit := value[:17] + strings.Repeat("A", (wire.MaxContext-len("token")+48)*4/3) // of the value what is sealed counts
	_, err = wire.ContextOf(header(map[string]string{"token": fit}, "token"))
	require.NoError(t, err)
	_, err = wire.ContextOf(header(map[string]string{"token": fit + "AAAA"}, "token"))
	require.Equal(t, fault.LimitExceeded, fault.CodeOf(err))
}

func TestSealingKeyForm(t *testing.T) {
	t.Parallel()
	k := wire.SealingKey{ID: "0af7651916cd43dd", Public: "stepjet-seal-1:x", Created: at}
	h, body := k.Message()
	wiretest.Golden(t, *update, "sealing_key", nats.Msg{Header: h, Data: body})
	require.False(t, wire.KindEvent.Known(h), "who does not know of it leaves it alone")
	require.True(t, wire.KindPlan.Known(h))
	back, ok := wire.ParseSealingKey(wiretest.Load(t, "sealing_key").Data)
	require.True(t, ok)
	require.Equal(t, k, back)
	for _, bad := range []string{"", "{", `{"id":"x"}`} {
		_, ok = wire.ParseSealingKey([]byte(bad))
		require.False(t, ok, bad)
	}
}
