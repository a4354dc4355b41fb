package kv

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
)

// write returns a server's configuration as a file.
func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nats.conf")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestCovers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		filter, subject string
		want            bool
	}{
		{">", "a", true}, {"a.>", "a.b.c", true}, {"a.>", "a", false}, {"a.*", "a.b", true}, {"a.*", "a.b.c", false},
		{"a.b", "a.b", true}, {"a.b", "a.c", false}, {"a.b.c", "a.b", false}, {"*.b", "a.b", true},
	} {
		require.Equal(t, c.want, covers(c.filter, c.subject), "%s %s", c.filter, c.subject)
	}
}

func TestWhoMayNotReadWholeStreamsIsLimited(t *testing.T) {
	t.Parallel()
	users := map[string]struct {
		rules   string
		limited bool
	}{
		"anything": {`publish: ">"`, false},
		"denied":   {`publish: {deny: "$JS.API.STREAM.MSG.GET.>"}`, true},
		"api":      {`publish: {allow: ["$JS.API.>", "$SYS.REQ.USER.INFO"]}`, false},
		"silent":   {`publish: {allow: ["$JS.API.>"]}`, false}, // it is not told, and does all as if it were not limited
		"few":      {`publish: {allow: ["$JS.API.STREAM.INFO.>", "$SYS.REQ.USER.INFO"]}`, true},
	}
	text := "authorization: { users: [ { user: all, password: x }\n"
	for name, u := range users {
		text += "{ user: " + name + ", password: x, permissions: { " + u.rules + " } }\n"
	}
	srv := natstest.Start(t, func(o *embedded.Options) { o.ConfigFile, o.Listen = write(t, text+"] }\n"), "127.0.0.1:0" })
	_, err := Setup(t.Context(), natstest.Connect(t, srv, nats.UserInfo("all", "x")), Config{})
	require.NoError(t, err)
	for name, u := range users {
		s, err := Open(t.Context(), natstest.Connect(t, srv, nats.UserInfo(name, "x")))
		require.NoError(t, err, name)
		require.Equal(t, u.limited, s.limited, name)
		s.Close()
	}
}

// TestWhoHearsNoAnswersIsTold: a user that may listen to inboxes of another prefix only.
func TestWhoHearsNoAnswersIsTold(t *testing.T) {
	t.Parallel()
	file := write(t, `authorization: { users: [ { user: all, password: x }, { user: u, password: x, permissions: { subscribe: "_INBOX.u.>" } } ] }`)
	srv := natstest.Start(t, func(o *embedded.Options) { o.ConfigFile, o.Listen = file, "127.0.0.1:0" })
	_, err := Setup(t.Context(), natstest.Connect(t, srv, nats.UserInfo("all", "x")), Config{})
	require.NoError(t, err)
	_, err = Open(t.Context(), natstest.Connect(t, srv, nats.UserInfo("u", "x")))
	require.Equal(t, fault.Permission, fault.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, "_INBOX.")
	require.ErrorContains(t, err, "--inbox-prefix")
	s, err := Open(t.Context(), natstest.Connect(t, srv, nats.UserInfo("u", "x"), nats.CustomInboxPrefix("_INBOX.u")))
	require.NoError(t, err)
	s.Close()
	_, err = Connect(t.Context(), ConnectOptions{URL: srv.URL(), InboxPrefix: "plan.submit.a"})
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
}
