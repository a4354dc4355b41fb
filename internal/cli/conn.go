package cli

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/config"
	"github.com/stepjet/stepjet/internal/daemon"
	"github.com/stepjet/stepjet/internal/dev"
	"github.com/stepjet/stepjet/kv"
)

// connection is what flags and variables say about where Stepjet is. Flags win over variables, variables over defaults.
type connection struct {
	config.NATS
	data string
	env  func(string) string
}

// add declares the flags. --server is another name of --url, the one that the nats command uses.
func (c *connection) add(root *cobra.Command, env func(string) string) {
	c.env = env
	f := root.PersistentFlags()
	c.Flags(f)
	f.Lookup("url").Shorthand = "s"
	f.Lookup("url").Usage = "NATS server, or several separated by commas; --server is the same (env NATS_URL)"
	f.StringVar(&c.data, "data", "", "`folder` for data where no server is given (env STEPJET_DATA)")
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "server" {
			name = "url"
		}
		return pflag.NormalizedName(name)
	})
}

// resolve fills in what the flags left open from the environment.
func (c *connection) resolve(f *pflag.FlagSet) error {
	return c.FromEnvironment(f, func(name string) (string, bool) { v := c.env(name); return v, v != "" })
}

// given reports whether a server was named.
func (c *connection) given() bool { return c.URL != "" || c.Context != "" }

// dir gives the data folder, and whether a flag or a variable names it.
func (c *connection) dir() (dir string, named bool) {
	if c.data != "" {
		return c.data, true
	}
	return dev.DefaultDir(c.env), c.env("STEPJET_DATA") != ""
}

// arguments repeats the flags that lead to the same place, for a command that a person may type next.
func (c *connection) arguments() string {
	var b strings.Builder
	for _, f := range []struct{ name, value string }{
		{"url", c.URL}, {"context", c.Context}, {"creds", c.Creds}, {"nkey", c.NKey},
		{"tls-ca", c.CA}, {"tls-cert", c.Cert}, {"tls-key", c.Key}, {"inbox-prefix", c.InboxPrefix},
		{"data", c.data},
	} {
		if f.value == "" {
			continue
		}
		value := f.value
		if strings.Contains(value, "@") { // it may hold a password
			value = "…"
		}
		b.WriteString(" --" + f.name + " " + quote(value))
	}
	return b.String()
}

// when says whether a command starts what "stepjet dev" has, if no server is given and no dev is running.
type when int

const (
	never  when = iota
	ifKept      // where the data folder is there: for looking at runs that were made here
	always
)

// place is where a command wants to work.
type place struct {
	start     when
	tools     string // tools file for a toolworker in this process
	temporary bool   // keep nothing, unless a folder is named
}

var (
	remoteOnly = place{start: never}
	existing   = place{start: ifKept}
)

// session is an open way to Stepjet.
type session struct {
	client    *client.Client
	nc        *nats.Conn
	local     *dev.Stack // nil for a server elsewhere
	temporary bool       // nothing stays when the session is closed
	where     string
}

// open connects to the server that was named, to a running "stepjet dev", or to one started here.
func (a *app) open(ctx context.Context, p place) (*session, error) {
	o := a.flags.Options("stepjet", a.log())
	if a.flags.given() {
		if p.tools != "" {
			return nil, fault.New(fault.InvalidConfig, "--tools is for a toolworker in this process, and a server is given").
				WithHint("start a toolworker there with these tools, or leave the server away")
		}
		return a.connect(ctx, o)
	}
	dir, named := a.flags.dir()
	if url, running := dev.Running(dir); running && p.tools == "" {
		o.URL = url
		return a.connect(ctx, o)
	}
	switch {
	case p.start == always, p.start == ifKept && (named || dev.Exists(dir)):
		return a.startHere(ctx, p, dir, named)
	default:
		return a.connect(ctx, o) // the default address: it may be there, and if not, the error names it
	}
}

func (a *app) connect(ctx context.Context, o kv.ConnectOptions) (*session, error) {
	ctx, cancel := a.patience(ctx)
	defer cancel()
	nc, err := kv.Connect(ctx, o)
	if err != nil {
		return nil, why(ctx, err)
	}
	s := &session{nc: nc, where: nc.ConnectedUrlRedacted()}
	return s, s.attach(ctx, a)
}

// attach opens the client of a session; if it fails, the session is closed.
func (s *session) attach(ctx context.Context, a *app) (err error) {
	s.client, err = client.New(ctx, s.nc, client.Config{Tenant: a.flags.tenant, Logger: a.log()})
	if err != nil {
		s.close()
		return why(ctx, err)
	}
	return nil
}

// startHere starts everything in this process. A folder that nobody named is only a convenience: where it can't be used,
// a temporary one does.
func (a *app) startHere(ctx context.Context, p place, dir string, named bool) (*session, error) {
	if p.temporary && !named {
		dir = ""
	}
	o := dev.Options{Dir: dir, Tools: p.tools, Logger: a.log()}
	daemon.TuneGC()
	stack, err := dev.Start(ctx, o)
	if err != nil && dir != "" && !named && dev.Unusable(err) {
		a.say("%s the data folder can't be used, so nothing is kept: %v", a.errStyle.yellow("note:"), fault.As(err).Message)
		o.Dir = ""
		stack, err = dev.Start(ctx, o)
	}
	if err != nil {
		return nil, why(ctx, err)
	}
	s := &session{local: stack, temporary: o.Dir == "", where: o.Dir}
	if s.nc, err = stack.Connect(ctx, "cli"); err != nil {
		s.close()
		return nil, why(ctx, err)
	}
	if o.Dir != "" {
		if abs, err := filepath.Abs(o.Dir); err == nil {
			s.where = abs
		}
		a.say("%s", a.errStyle.dim("no server given: running in this process, data in "+s.where))
	}
	if err := s.attach(ctx, a); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *session) close() {
	if s.client != nil {
		s.client.Close()
	}
	if s.nc != nil {
		s.nc.Close()
	}
	if s.local != nil {
		s.local.Stop()
	}
}

// arguments repeats what leads back to this session's runs.
func (s *session) arguments(a *app) string {
	args := a.flags.connection.arguments()
	if a.flags.tenant != "" && a.flags.tenant != a.defaultTenant() {
		args += " --tenant " + quote(a.flags.tenant)
	}
	return args
}

// whenLocal says when a run that this process leaves behind goes on.
func (s *session) whenLocal() string {
	if s.local == nil {
		return ""
	}
	return " when Stepjet next starts on " + s.where
}

// patience bounds a context by --timeout.
func (a *app) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, a.flags.timeout, errPatience)
}

// errPatience is the cause of a context that --timeout ended.
var errPatience = fault.New(fault.Timeout, "no answer within --timeout").
	WithHint("it may have been done all the same; a run id makes it safe to try again")
