package acl_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stepjet/stepjet/internal/acl"
)

// TestMain fails where a permission is granted that no program has used in any test of this package.
func TestMain(m *testing.M) {
	code := m.Run()
	if some := flag.Lookup("test.run").Value.String() + flag.Lookup("test.skip").Value.String(); some == "" && code == 0 {
		for _, permission := range granted.unused() {
			fmt.Println("granted, and used by nobody:", permission)
			code = 1
		}
	}
	os.Exit(code)
}

// permissions are those of all systems of a test run: whether somebody has used them.
type permissions struct {
	mu   sync.Mutex
	used map[string]bool
}

var granted = permissions{used: map[string]bool{}}

// particular are the parts of names that say which stream, shard, tenant or tool it is: a permission is granted for all
// of a kind, and what is used of one is used of all.
var particular = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\b(KV_(runs_\d+|history|dead|tools|members|gather|questions|rates|groups|sinks)|OBJ_blobs(-[a-z]+)?|STEPS_\d+)\b`), "STREAM"},
	{regexp.MustCompile(`\$O\.blobs(-[a-z]+)?\.`), "$$O.blobs."},
	{regexp.MustCompile(`\$KV\.runs_\d+\.`), "$$KV.runs."},
	{regexp.MustCompile(`\b(step|sched|sentinel)\.\d+`), "$1.N"},
	{regexp.MustCompile(`\b(acme|other|new)\b`), "TENANT"},
	{regexp.MustCompile(`\b(search|fetch|crm=2Fget)\b`), "TOOL"},
}

// add notes what the programs of a system may do, and what they have done.
func (p *permissions) add(s *system) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for user, g := range s.grants {
		for verb, allowed := range map[string][]string{"PUB": g.Publishes(), "SUB": g.Listens} {
			done := s.book.of(s.public[user], verb)
			for _, pattern := range allowed {
				used := slices.ContainsFunc(done, func(subject string) bool { return covers(pattern, subject) })
				for _, x := range particular {
					pattern = x.what.ReplaceAllString(pattern, x.as)
				}
				role := g.Role
				if role == acl.Doctor { // an orchestrator, and a little more
					role = acl.Orchestrator
				}
				name := fmt.Sprintf("%s %s %s", role, verb, pattern)
				p.used[name] = p.used[name] || used
			}
		}
	}
}

// elsewhere are permissions that are used where no test of this package gets.
var elsewhere = map[string]string{
	"orchestrator PUB $JS.FC.>":                         "the server asks a cursor for it that has fallen behind",
	"orchestrator PUB $JS.API.STREAM.UPDATE.STREAM":     "stepjet doctor --fix, where settings differ: internal/doctor",
	"orchestrator PUB api.demand":                       "stepjet doctor: internal/doctor",
	"orchestrator PUB api.demand.queues":                "stepjet doctor: internal/doctor",
	"orchestrator PUB plan.in.*.*.*":                    "stepjet doctor, where the ledger has several shards: internal/doctor",
	"orchestrator PUB $JS.API.CONSUMER.PAUSE.STREAM.*":  "a stop takes steps back that no worker has: kv",
	"orchestrator PUB $JS.API.STREAM.MSG.DELETE.STREAM": "a stop takes steps back that no worker has: kv",
	"observer PUB $JS.FC.>":                             "as an orchestrator's",
	"observer PUB $JS.API.CONSUMER.INFO.STREAM.>":       "a cursor looks after its consumer when the connection was lost: kv",
	"orchestrator PUB $JS.API.DIRECT.GET.STREAM.>":      "a chunk of a large value whose acknowledgement was lost: kv",
}

func (p *permissions) unused() (all []string) {
	for name, used := range p.used {
		if !used && elsewhere[name] == "" {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// covers reports whether a pattern allows a subject, or a filter of several.
func covers(pattern, subject string) bool {
	allowed, asked := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, token := range allowed {
		switch {
		case token == ">":
			return len(asked) > i
		case i >= len(asked) || asked[i] == ">" || token != "*" && token != asked[i]:
			return false
		}
	}
	return len(asked) == len(allowed)
}
