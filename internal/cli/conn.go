package cli

import (
	"context"
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
	"github.com/stepjet/stepjet/subjects"
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

// dir returns the data folder, and whether a flag or a variable names it.
func (c *connection) dir() (dir string, named bool) {
	if c.data != "" {
		return c.data, true
	}
	return dev.DefaultDir(c.env), c.env("STEPJET_DATA") != ""
}

// arguments repeats the flags that lead to the same place, for a command that a person may type next.
func (c *connection) arguments() string { return asTyped(c.words()) }

// words are arguments, as a program takes them.
func (c *connection) words() (all []string) {
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
		all = append(all, "--"+f.name, value)
	}
	return all
}

// asTyped returns flags and their values as a person types them, each with a space before it.
func asTyped(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i%2 == 1 {
			w = quote(w)
		}
		b.WriteString(" " + w)
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
	bare      bool   // no client of a tenant: for what operators of the cluster may do too
}

var (
	remoteOnly = place{start: never}
	existing   = place{start: ifKept}
	registry   = place{start: ifKept, bare: true}
)

// session is an open way to Stepjet.
type session struct {
	client    *client.Client
	nc        *nats.Conn
	local     interface{ Stop() } // what this process has of Stepjet; nil for a server elsewhere
	temporary bool                // nothing stays when the session is closed
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
		return a.connect(ctx, p, o)
	}
	dir, named := a.flags.dir()
	if url, running := dev.Running(dir); running && p.tools == "" {
		o.URL = url
		return a.connect(ctx, p, o)
	}
	if p.tools == "" { // also of a command that only goes on with what is there: its runs need the tools that they had
		p.tools = a.hostedTools()
	}
	switch {
	case p.temporary && !named:
		return a.startTemporary(ctx, p)
	case p.start == always, p.start == ifKept && (named || dev.Exists(dir)), dev.Busy(dir):
		return a.join(ctx, p, dir)
	default:
		return a.connect(ctx, p, o) // the default address: it may be there, and if not, the error names it
	}
}

// hostedTools returns the tools file that the environment names; empty for the built-in tools.
func (a *app) hostedTools() string {
	file, _ := a.lookup("STEPJET_TOOLS")
	return file
}

func (a *app) connect(ctx context.Context, p place, o kv.ConnectOptions) (*session, error) {
	ctx, cancel := a.patience(ctx)
	defer cancel()
	nc, err := kv.Connect(ctx, o)
	if err != nil {
		return nil, why(ctx, err)
	}
	s := &session{nc: nc, where: nc.ConnectedUrlRedacted()}
	return s, s.attach(ctx, a, p)
}

// attach opens the client of a session; if it fails, the session is closed.
func (s *session) attach(ctx context.Context, a *app, p place) (err error) {
	if p.bare {
		return nil
	}
	s.client, err = client.New(ctx, s.nc, client.Config{Tenant: a.flags.tenant, SealTo: a.flags.sealTo, Logger: a.log()})
	if err != nil {
		s.close()
		return why(ctx, err)
	}
	return nil
}

// startTemporary starts everything in this process, for work that leaves nothing to keep.
func (a *app) startTemporary(ctx context.Context, p place) (*session, error) {
	daemon.TuneGC()
	keys, err := a.keys()
	if err != nil {
		return nil, err
	}
	stack, err := dev.Start(ctx, dev.Options{Tools: p.tools, SecretsKey: keys, Logger: a.log()})
	if err != nil {
		return nil, why(ctx, err)
	}
	s := &session{local: stack, temporary: true}
	if s.nc, err = stack.Connect(ctx, "cli"); err != nil {
		s.close()
		return nil, why(ctx, err)
	}
	return s, s.attach(ctx, a, p)
}

// join works on a data folder: together with the process that has it, or by starting everything in this one. There is
// no way back to a folder that nobody keeps, since a run id that ran there would run again elsewhere.
func (a *app) join(ctx context.Context, p place, dir string) (*session, error) {
	if dir == "" {
		return nil, fault.New(fault.InvalidConfig, "there is no home folder to keep data in").
			WithHint("name one: --data FOLDER, or STEPJET_DATA; or a server: --server URL")
	}
	daemon.TuneGC()
	keys, err := a.keys()
	if err != nil {
		return nil, err
	}
	o := dev.Options{Dir: dir, Tools: p.tools, SecretsKey: keys, Logger: a.log()}
	shared, err := dev.Join(ctx, o, p.start == always, func() { a.tellWaiting(dir) })
	if dev.Unusable(err) {
		f := fault.As(err)
		f.Hint = "name another folder: --data FOLDER, or STEPJET_DATA; or a server: --server URL"
		return nil, f
	}
	if err != nil {
		return nil, why(ctx, err)
	}
	s := &session{local: shared, where: shared.Dir()}
	if s.nc, err = shared.Connect(ctx, "cli"); err != nil {
		s.close()
		return nil, why(ctx, err)
	}
	how := "joining the Stepjet that runs there"
	if shared.Here() {
		how = "running in this process"
	}
	a.say("%s", a.errStyle.dim("no server given: "+how+", data in "+s.where))
	return s, s.attach(ctx, a, p)
}

func (a *app) tellWaiting(dir string) {
	a.say("%s", a.errStyle.dim("another stepjet has the data folder "+dir+": waiting for it"))
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
func (s *session) arguments(a *app) string { return asTyped(argumentsOf(a)) }

// argumentsOf are the arguments that lead to the same runs, as a program takes them.
func argumentsOf(a *app) []string {
	all := a.flags.connection.words()
	switch tenant := a.flags.tenant; { // that of the environment too, as all others
	case tenant == "", tenant == subjects.DefaultTenant && a.defaultTenant() == tenant:
	default:
		all = append(all, "--tenant", tenant)
	}
	return all
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

// lookup reads a variable of the command's own environment.
func (a *app) lookup(name string) (string, bool) {
	v := a.env.Getenv(name)
	return v, v != ""
}
