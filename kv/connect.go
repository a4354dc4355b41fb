package kv

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/synadia-io/orbit.go/natscontext"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/subjects"
)

// ConnectOptions say how to reach NATS. The zero value means nats://127.0.0.1:4222 without credentials.
type ConnectOptions struct {
	// URL is one server or several, separated by commas; it may hold user:password@ or token@.
	URL string
	// Creds is a file of user credentials (JWT and seed), NKey a file with an nkey seed.
	Creds, NKey string
	// Context is the name or the file of a context of the nats command; the other fields override what it says.
	Context string
	// Name is the connection's name, shown by the server's monitoring.
	Name string
	// CA, Cert and Key are PEM files for TLS; empty: the system's roots, and no client certificate.
	CA, Cert, Key string
	// InboxPrefix is what the subjects of all answers to this connection begin with, without a dot at the end; empty:
	// "_INBOX". With one for each user, permissions can keep a user from hearing the answers to others. It begins
	// with "_".
	InboxPrefix string
	// InProcess connects to an embedded server without a socket; URL and Context are ignored then.
	InProcess nats.InProcessConnProvider
	// Wait is how long Connect goes on trying where there is no server yet; 0: each server is tried once.
	Wait time.Duration
	// Logger takes disconnects, reconnects and asynchronous errors; nil: none.
	Logger *slog.Logger
}

// dialTimeout bounds the first connection to each of the servers; a sooner deadline of the context wins.
const dialTimeout = 5 * time.Second

// reconnectBuffer holds what is published during an outage, in bytes; beyond it a publish fails and is tried again.
const reconnectBuffer = 8 << 20

// pingEvery is how often a server is asked whether it is still there. One that went silent without closing its
// connections (a machine that lost its power, a cable) is given up after the third interval: about when the cluster
// elects other leaders for what it led, which takes 4 to 9 s. With the library's two minutes every client of it would
// stand still for as long as six.
const pingEvery = 1500 * time.Millisecond

// Connect opens a connection. The first attempt must succeed within o.Wait; from then on it reconnects for ever, so
// that a server may be away for any time, also one that refuses credentials for a while which it took before. Errors:
// NoConnection names the URL tried, Permission where the credentials are refused, InvalidConfig where a file or a
// context can't be read.
func Connect(ctx context.Context, o ConnectOptions) (*nats.Conn, error) {
	until, said := time.Now().Add(o.Wait), time.Time{}
	for wait := backoff.Between(connectPause, 8*connectPause); ; {
		nc, err := o.connect(ctx)
		left := time.Until(until)
		if err == nil || fault.CodeOf(err) != fault.NoConnection || left <= 0 || ctx.Err() != nil {
			return nc, err
		}
		if o.Logger != nil && time.Since(said) >= connectReport {
			said = time.Now()
			o.Logger.Warn("waiting for NATS", "error", err, "at_most", left.Round(time.Second))
		}
		if !backoff.Pause(ctx, min(wait.Next(), left)) {
			return nil, Fault(context.Cause(ctx))
		}
	}
}

// connectPause is the first pause between two attempts to find a server, connectReport how often it is said that
// there is none.
const connectPause, connectReport = 250 * time.Millisecond, 10 * time.Second

// connect tries each server once.
func (o ConnectOptions) connect(ctx context.Context) (*nats.Conn, error) {
	opts, err := o.options(ctx)
	if err != nil {
		return nil, err
	}
	var tried string // the servers that nats.go was told in the end; empty while settings are still being read
	opts = append(opts, func(n *nats.Options) error {
		tried = redact(strings.Join(n.Servers, ","))
		return nil
	})
	var nc *nats.Conn
	switch {
	case o.InProcess != nil:
		nc, err = nats.Connect("", append(opts, nats.InProcessServer(&inside{server: o.InProcess}))...)
		tried = "the embedded server"
	case o.Context != "":
		nc, _, err = natscontext.Connect(o.Context, opts...)
	case o.URL != "":
		nc, err = nats.Connect(o.URL, opts...)
	default:
		nc, err = nats.Connect(nats.DefaultURL, opts...)
	}
	if err != nil && tried == "" {
		return nil, fault.Wrap(fault.InvalidConfig, err, "reading the NATS settings")
	}
	return connected(ctx, nc, err, tried)
}

// connected checks the result of the first connection attempt.
func connected(ctx context.Context, nc *nats.Conn, err error, tried string) (*nats.Conn, error) {
	if err == nil && ctx.Err() != nil {
		nc.Close()
		err = ctx.Err()
	}
	if err == nil {
		return nc, nil
	}
	if f := Fault(err); f.Code == fault.Permission {
		f.Message = "the NATS server at " + tried + " refuses these credentials: " + err.Error()
		return nil, f
	}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return nil, fault.Wrap(fault.InvalidConfig, err, "reading the credentials or certificates")
	}
	f := fault.New(fault.NoConnection, "no NATS server at %s: %v", tried, err).
		WithHint("start one (stepjet dev, or nats-server -js), or name another (--url or NATS_URL)")
	if strings.Contains(err.Error(), "tls: ") || strings.Contains(err.Error(), "tls error") || strings.Contains(err.Error(), "x509: ") {
		f.Hint = "is the server's certificate of an authority in --tls-ca, and does the server want a certificate of its own authority (--tls-cert, --tls-key)?"
	}
	f.Cause = err
	return nil, f
}

// redact hides the passwords and tokens of server URLs.
func redact(urls string) string {
	list := strings.Split(urls, ",")
	for i, s := range list {
		s = strings.TrimSpace(s)
		if at := strings.LastIndexByte(s, '@'); at >= 0 {
			scheme := ""
			if u, err := url.Parse(s); err == nil && u.Scheme != "" {
				scheme = u.Scheme + "://"
			}
			s = scheme + s[at+1:]
		}
		list[i] = s
	}
	return strings.Join(list, ",")
}

func setServers(urls string) nats.Option {
	return func(opts *nats.Options) error {
		opts.Servers = nil
		for _, s := range strings.Split(urls, ",") {
			opts.Servers = append(opts.Servers, strings.TrimSpace(s))
		}
		return nil
	}
}

func (o ConnectOptions) options(ctx context.Context) ([]nats.Option, error) {
	timeout := dialTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(deadline))
	}
	if timeout <= 0 || ctx.Err() != nil {
		return nil, Fault(context.Cause(ctx))
	}
	opts := []nats.Option{
		nats.Name(o.Name), nats.Timeout(timeout), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(250*time.Millisecond, 500*time.Millisecond), nats.ReconnectBufSize(reconnectBuffer),
		nats.PermissionErrOnSubscribe(true), nats.PingInterval(pingEvery), nats.IgnoreAuthErrorAbort(),
	}
	opts = append(opts, dialing(ctx))
	if o.Context != "" && o.URL != "" {
		opts = append(opts, setServers(o.URL))
	}
	if o.Creds != "" {
		if err := checkCreds(o.Creds); err != nil {
			return nil, err
		}
		opts = append(opts, nats.UserCredentials(o.Creds))
	}
	if o.NKey != "" {
		nkey, err := nats.NkeyOptionFromSeed(o.NKey)
		if err != nil {
			return nil, fault.Wrap(fault.InvalidConfig, err, "reading the nkey seed "+o.NKey)
		}
		opts = append(opts, nkey)
	}
	if o.CA != "" {
		opts = append(opts, nats.RootCAs(o.CA))
	}
	if o.Cert != "" || o.Key != "" {
		opts = append(opts, nats.ClientCert(o.Cert, o.Key))
	}
	if o.InboxPrefix != "" {
		if !subjects.ReplyAllowed(o.InboxPrefix) {
			return nil, fault.New(fault.InvalidConfig, "%q is no prefix for inboxes", o.InboxPrefix).
				WithHint("it begins with _, such as _INBOX.agent: orchestrators answer on no other subjects")
		}
		opts = append(opts, nats.CustomInboxPrefix(o.InboxPrefix))
	}
	return append(opts, o.logging()...), nil
}

// checkCreds finds out what is wrong with a file of credentials before a server is asked. It is read again for each
// connection, so that it can be renewed while a program runs.
func checkCreds(file string) error {
	raw, err := os.ReadFile(file)
	if err == nil {
		_, err = nkeys.ParseDecoratedUserNKey(raw)
		clear(raw)
	}
	if err != nil {
		return fault.Wrap(fault.InvalidConfig, err, "reading the credentials "+file)
	}
	return nil
}

func (o ConnectOptions) logging() []nats.Option {
	log := o.Logger
	if log == nil { // the library would write to standard error
		return []nats.Option{nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})}
	}
	return []nats.Option{
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("disconnected from NATS", "error", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) { log.Info("reconnected to NATS", "server", nc.ConnectedUrlRedacted()) }),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			if sub != nil {
				log.Error("NATS error", "error", err, "subject", sub.Subject)
				return
			}
			log.Error("NATS error", "error", err)
		}),
	}
}
