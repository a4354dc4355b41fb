package front

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
)

func TestLoopback(t *testing.T) {
	for _, address := range []string{"localhost", "localhost:80", "127.0.0.1:80", "127.9.9.9", "[::1]:80", "[::1]", "::1"} {
		require.True(t, Loopback(address), address)
	}
	for _, address := range []string{"", ":80", "0.0.0.0:80", "[::]:80", "10.0.0.1:80", "localhost.example.com", "127.0.0.1.example.com:80"} {
		require.False(t, Loopback(address), address)
	}
}

func TestDigest(t *testing.T) {
	sum := sha256.Sum256([]byte("secret"))
	d, err := ParseDigest(hex.EncodeToString(sum[:]))
	require.NoError(t, err)
	require.True(t, d.Of("secret"))
	require.False(t, d.Of(""))
	require.False(t, d.Of("secret "))
	for _, text := range []string{"", "secret", hex.EncodeToString(sum[1:]), hex.EncodeToString(sum[:]) + "00"} {
		_, err := ParseDigest(text)
		require.Equal(t, fault.InvalidConfig, fault.CodeOf(err), text)
	}
}

func TestNothingOfAFileIsPassedOver(t *testing.T) {
	var into struct{ Name string }
	require.NoError(t, ReadFile([]byte(`{"name":"ann"} `+"\n"), &into))
	require.Equal(t, "ann", into.Name)
	for _, file := range []string{"", "{", `{"nam":"ann"}`, `{"name":"ann"}{"name":"bob"}`, `{"name":"ann"}x`} {
		require.Equal(t, fault.InvalidConfig, fault.CodeOf(ReadFile([]byte(file), &into)), file)
	}
}

// Who holds a stream open does not keep the server from ending.
func TestServingEndsWhileAStreamIsOpen(t *testing.T) {
	l, err := Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	open, closed := make(chan struct{}), false
	ended := make(chan error, 1)
	go func() {
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			close(open)
			<-r.Context().Done()
		})
		server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
		ended <- Serve(ctx, server, l, 10*time.Millisecond, func() { closed = true })
	}()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String(), nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	<-open
	stop()
	require.NoError(t, <-ended)
	require.True(t, closed)

	_, err = Listen(t.Context(), "127.0.0.1:x")
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
}
