package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/internal/config"
	"github.com/stepjet/stepjet/internal/dev"
	"github.com/stepjet/stepjet/internal/doctor"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/kv"
)

type doctorFlags struct {
	fix, setUp bool
	monitor    string
	stale      seconds
	store      config.Store
}

func (a *app) doctorCommand() *cobra.Command {
	var f doctorFlags
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check all that Stepjet rests on in a NATS account, and mend it",
		Long: `Checks the NATS server, every stream, bucket and consumer, the tool registry, the runs under
way, and who is alive. Each problem is explained: what was expected, what was found, what it
means for users, and what --fix does about it or what has to be written elsewhere.

--fix sets up an account where nothing is there yet, and changes nothing that is well. Flags and
variables that say how streams are set up are those of the orchestrator; what they ask for is
compared with what there is.

Exit codes: 0 all is well (with --fix: now), 1 there are problems, 4 no connection.`,
		Example: `  stepjet doctor
  stepjet doctor --fix
  stepjet doctor --durability always --monitor http://127.0.0.1:8222
  stepjet doctor -o json`,
		Args: exactly(),
		RunE: a.work(func(cmd *cobra.Command, _ []string) error {
			if err := f.store.FromEnvironment(cmd.Flags(), a.lookup); err != nil {
				return err
			}
			return a.doctor(cmd.Context(), f)
		}),
	}
	fs := c.Flags()
	fs.BoolVar(&f.fix, "fix", false, "mend what can be mended")
	fs.StringVar(&f.monitor, "monitor", "", "`URL` of a server's monitoring, or several: sync_interval, health (env STEPJET_MONITOR)")
	fs.DurationVar(&f.stale, "stale", time.Minute, "look into runs without a sign of life for this `duration`")
	f.store.Flags(fs)
	return c
}

func provisionCommand(a *app) *cobra.Command {
	f := doctorFlags{fix: true, setUp: true}
	c := &cobra.Command{
		Use:   "provision",
		Short: "Set up a NATS account for this version, or make it ready for an upgrade",
		Long: `Makes every stream, bucket and consumer that this version of Stepjet needs and that is absent, and
sets those settings of the others that are not as they should be. It looks at no process and no
run, needs none, and leaves what a version of before still needs, so it is the first step of an
upgrade, while that version is at work, and of an installation. Doing it again changes nothing.

An orchestrator does the same as it starts, but for settings of what exists, which no start changes.
Flags and variables that say how streams are set up are those of the orchestrator.

Exit codes: 0 the account is ready, 1 something is left that a person has to do, 4 no connection.`,
		Example: `  stepjet provision
  stepjet provision --durability replicated
  stepjet provision --nkey doctor.nk --inbox-prefix _INBOX.doctor -o json`,
		Args: exactly(),
		RunE: a.work(func(cmd *cobra.Command, _ []string) error {
			if err := f.store.FromEnvironment(cmd.Flags(), a.lookup); err != nil {
				return err
			}
			return a.doctor(cmd.Context(), f)
		}),
	}
	f.store.Flags(c.Flags())
	return c
}

// diagnosis is what the command found, as -o json prints it.
type diagnosis struct {
	Healthy  bool             `json:"healthy"`
	Findings []doctor.Finding `json:"findings"`
	// Left are the problems that are there after mending.
	Left []doctor.Finding `json:"left"`
}

func (a *app) doctor(ctx context.Context, f doctorFlags) error {
	if f.stale < 0 {
		return usage(fmt.Errorf("--stale %v: no time is shorter than none", f.stale))
	}
	nc, err := a.reach(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	if f.monitor == "" {
		f.monitor = a.env.Getenv("STEPJET_MONITOR")
	}
	seen, ailing, err := a.monitored(ctx, f.monitor)
	if err != nil {
		return err
	}
	o := doctor.Options{Want: f.store.Config(), Sync: f.store.Sync(), Seen: seen, Ailing: ailing, Mend: f.fix, SetUp: f.setUp, Stale: f.stale, Tenant: a.flags.tenant}
	o.Want.Logger = a.log()
	if keys, err := a.keys(); err != nil {
		return err
	} else if keys != nil {
		o.HoldsKey = keys.Has
	}
	report, err := doctor.Examine(ctx, nc, o)
	if err != nil {
		return why(ctx, err)
	}
	left := report.Problems()
	if f.fix { // what mending came to, a second look tells
		o.Mend = false
		again, err := doctor.Examine(ctx, nc, o)
		if err != nil {
			return why(ctx, err)
		}
		left = again.Problems()
	}
	if err := a.showDiagnosis(diagnosis{len(left) == 0, report.Findings, left}, f.fix); err != nil {
		return err
	}
	if len(left) > 0 {
		return quietly(exitFailed)
	}
	return nil
}

// reach connects as the other commands do, without asking that Stepjet be set up there.
func (a *app) reach(ctx context.Context) (*nats.Conn, error) {
	o := a.flags.Options("stepjet doctor", a.log())
	if dir, _ := a.flags.dir(); !a.flags.given() {
		if url, running := dev.Running(dir); running {
			o.URL = url
		}
	}
	short, cancel := a.patience(ctx)
	defer cancel()
	nc, err := kv.Connect(short, o)
	return nc, why(short, err)
}

func (a *app) showDiagnosis(d diagnosis, fix bool) error {
	if a.json() {
		if d.Left == nil {
			d.Left = []doctor.Finding{}
		}
		return a.printJSON(d)
	}
	var b strings.Builder
	mended, fixable := 0, 0
	for i := range d.Findings {
		x := &d.Findings[i]
		a.showFinding(&b, x)
		if x.Mended {
			mended++
		} else if x.Fixable {
			fixable++
		}
	}
	b.WriteString("\n")
	switch {
	case len(d.Left) > 0:
		b.WriteString(a.style.red(text.Count(len(d.Left), "problem")))
	default:
		b.WriteString(a.style.green("all is well"))
	}
	if mended > 0 {
		fmt.Fprintf(&b, "; %d mended", mended)
	}
	if fixable > 0 && !fix {
		fmt.Fprintf(&b, "; stepjet doctor --fix%s mends %d", a.flags.connection.arguments(), fixable)
	}
	b.WriteString("\n")
	if fix {
		for i := range d.Left {
			fmt.Fprintf(&b, "  left: %s\n", strings.TrimSpace(d.Left[i].Check+" "+d.Left[i].About))
		}
	}
	_, err := a.stdout.Write([]byte(b.String()))
	return err
}

// showFinding writes one finding: a line for what is well, more for the rest.
func (a *app) showFinding(b *strings.Builder, x *doctor.Finding) {
	st := a.style
	paint := map[doctor.Health]func(string) string{doctor.Healthy: st.green, doctor.Notable: st.yellow, doctor.Broken: st.red}[x.Health]
	fmt.Fprintf(b, "%s  %s", paint(fmt.Sprintf("%-7s", x.Health)), st.bold(fmt.Sprintf("%-15s", x.Check)))
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(b, "         %s  %s\n", st.dim(fmt.Sprintf("%-8s", name)), oneLine(text))
		}
	}
	if x.Health == doctor.Healthy {
		about := ""
		if x.About != "" {
			about = x.About + ": "
		}
		fmt.Fprintf(b, "  %s%s\n", oneLine(about), oneLine(x.Found))
		line("means", x.Means)
		return
	}
	fmt.Fprintf(b, "  %s\n", oneLine(x.About))
	line("expected", x.Expected)
	line("found", x.Found)
	line("means", x.Means)
	switch {
	case x.Mended:
		line("mended", x.Fix)
	case x.Failure != "":
		line("fix", x.Fix)
		line("failed", x.Failure)
	case x.Fixable:
		line("--fix", x.Fix)
	default:
		line("do", x.Fix)
	}
}
