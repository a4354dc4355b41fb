package chaos

import (
	"bytes"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/subjects"
)

// Point is the moment at which a process kills itself: the Nth time that it sends something on the wire, either before
// the bytes leave or just after. What a process does next on the wire shows what it has done before: a worker that
// sends the record has had the effect, and one that acknowledges knows that the record stands.
type Point struct {
	Name  string
	Text  string // what the bytes contain
	Nth   int
	After bool
}

// Tool is the Text of a Point that is not on the wire but in the tool: before or after its effect.
const inTool = "tool"

var (
	ledger = subjects.LedgerPrefix(0)
	// workerPoints are the moments between a worker's delivery and its acknowledgement.
	workerPoints = []Point{
		{Name: "before effect", Text: inTool},
		{Name: "after effect", Text: inTool, After: true},
		{Name: "before record", Text: ledger},
		{Name: "after record", Text: ledger, After: true},
		{Name: "before ack", Text: "+ACK"},
		{Name: "after ack", Text: "+ACK", After: true},
	}
	// orchestratorPoints are before and after each kind of effect.
	orchestratorPoints = bothSides(
		Point{Name: "start or record", Text: ledger},
		Point{Name: "dispatch", Text: strings.SplitAfter(subjects.StepsSubjects(0)[0], ".")[0] + "0."},
		Point{Name: "history", Text: subjects.BucketSubject(subjects.HistoryBucket, "")},
		Point{Name: "dead letter", Text: subjects.BucketSubject(subjects.DeadBucket, "")},
		Point{Name: "purge", Text: "STREAM.PURGE"},
		Point{Name: "outcome event", Text: "." + subjects.EventEnd + " "},
	)
)

func bothSides(points ...Point) []Point {
	var all []Point
	for _, p := range points {
		before, after := p, p
		before.Name, after.Name, after.After = "before "+p.Name, "after "+p.Name, true
		all = append(all, before, after)
	}
	return all
}

// die is kill -9 of this process: nothing is flushed, closed or told to anybody.
func die() {
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	select {}
}

// tap gives connections that watch what is sent. It looks to nats.go like a server in the same process.
type tap struct {
	urls  string
	point *Point

	mu   sync.Mutex
	next int
	seen int
}

// InProcessConn dials the next of the servers.
func (w *tap) InProcessConn() (net.Conn, error) {
	list := strings.Split(w.urls, ",")
	w.mu.Lock()
	addr := strings.TrimPrefix(list[w.next%len(list)], "nats://")
	w.next++
	w.mu.Unlock()
	c, err := net.DialTimeout("tcp", addr, 2*time.Second)
	if err != nil {
		return nil, err
	}
	return &watched{Conn: c, w: w}, nil
}

var _ nats.InProcessConnProvider = (*tap)(nil)

type watched struct {
	net.Conn
	w *tap
}

// Write sends what it is given, unless the moment has come.
func (c *watched) Write(b []byte) (int, error) {
	hit := c.w.count(b)
	if hit && !c.w.point.After {
		die()
	}
	n, err := c.Conn.Write(b)
	if hit {
		die()
	}
	return n, err
}

func (w *tap) count(b []byte) (hit bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.seen
	w.seen += bytes.Count(b, []byte(w.point.Text))
	return before < w.point.Nth && w.seen >= w.point.Nth
}
