// Package ui serves the page: what runs there are, what becomes of them, and what can be done about it, in a browser.
//
// It is a view. What it shows is read from the streams and asked of orchestrators, and what it does it does as any
// other client: nothing rests on it, any number of it may run, and one that dies takes nothing along.
//
// Safety. It reads the runs of all tenants, with the rights of the role observer, and shows each caller those of its own
// tenants; what it changes it changes as a client of the tenant (Config.Actor). Without tokens it listens on loopback
// alone. A request has to name a host that it is known by, and one that changes something has to come from its own page.
// What runs hold is anybody's text: it leaves as JSON and becomes text nodes, and no policy of the page allows more.
//
// Liveness. Lists come from an index in memory, which follows the streams and is read anew each hour and whenever it can
// no longer be told whether it is right. A run that is looked at costs one subscription, however many look. Where the
// connection is away, those who look are told so, and nobody waits for what it alone could answer.
package ui

import (
	"cmp"
	"context"
	_ "embed"
	"log/slog"
	"net/http"
	"sync"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/ui/page"
	"github.com/stepjet/stepjet/kv"
)

// Server serves the page.
type Server struct {
	cfg   Config
	store *kv.Store
	link  *link
	lines *follower
	docs  *reader
	hub   *hub
	staff *staff
	asked *asked
	rules *overriding
	heads *counts

	ctx  context.Context // ends with Close
	stop context.CancelFunc
	done sync.WaitGroup
}

// New opens the page's way to Stepjet and begins to read. Close it. Errors: NotReady where no orchestrator has set Stepjet
// up, Permission, NoConnection.
func New(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	store, err := kv.Open(ctx, cfg.Conn)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, store: store, staff: &staff{store: store}, asked: newAsked(store)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.link = newLink(s.ctx, cfg.Conn)
	s.docs, s.rules = newReader(s.link, cfg), &overriding{cfg: &s.cfg, read: store}
	s.lines = newFollower(store, cfg.Logger)
	s.heads = &counts{store: store, life: s.ctx, done: &s.done, kept: map[string]*told{}}
	s.hub = newHub(s.ctx, s.docs.client, s.lines, s.link)
	s.done.Go(func() { s.lines.run(s.ctx) })
	s.done.Go(func() { s.link.run(s.ctx, s.hub.stand) })
	waits := &waits{store, s.lines.index(), s.link, cfg.Logger, cmp.Or(cfg.WaitsTooLong, waitsTooLong)}
	s.done.Go(func() { waits.run(s.ctx) })
	return s, nil
}

// Close ends what is read and watched; the connection stays open. Streams that are still served end.
func (s *Server) Close() {
	s.stop()
	s.hub.wait()
	s.done.Wait()
	s.docs.close()
	s.staff.close()
	s.rules.close()
	s.store.Close()
}

// Handler returns the page and what it asks as an HTTP handler.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	known := func(path string, do endpoint) { mux.Handle("GET /api/v1/"+path, s.cfg.Auth.guard(do, Viewer)) }
	get := func(path string, do endpoint) { known(path, s.link.reading(do)) }
	try := func(path string, do endpoint) { // as a get, with a body
		mux.Handle("POST /api/v1/"+path, s.cfg.Auth.guard(s.link.reading(do), Viewer))
	}
	post := func(path string, do endpoint, one ...Role) {
		mux.Handle("POST /api/v1/"+path, s.cfg.Auth.guard(s.link.changing(do), one...))
	}
	look, act := looking{&s.cfg, s.lines, s.docs, s.asked, s.link, s.staff}, acting{s.docs, s.asked, s.ctx, &s.done}
	known("me", look.me)
	known("runs", look.runs)
	known("figures", look.figures)
	known("stream", s.hub.stream)
	known("openapi.yaml", described)
	get("runs/{key}", look.run)
	get("runs/{key}/plan", look.text)
	get("runs/{key}/steps/{step}", look.step)
	get("runs/{key}/steps/{step}/blob", newSaving(look).blob)
	get("tools", look.tools)
	get("dead", look.dead)
	get("questions", look.questions)
	get("runs/{key}/questions/{step}", look.question)
	get("workers", s.staff.workers)
	get("doctor", (&checkup{conn: s.cfg.Conn, link: s.link}).examine)
	try("validate", act.validate)
	try("heads", s.heads.heads)
	post("runs", act.submit, Operator)
	post("runs/{key}/cancel", act.cancel, Operator)
	post("runs/{key}/retry", act.retry, Operator)
	post("runs/{key}/approve", act.approve, Approver)
	post("runs/{key}/answer", act.answer, Operator, Approver)
	post("runs/{key}/say", act.word, Operator)
	post("tools/{tool}/override", s.rules.override, Operator)
	post("dead/retry", act.again, Operator)
	mux.HandleFunc("POST /api/v1/login", s.cfg.Auth.login)
	mux.HandleFunc("POST /api/v1/logout", s.cfg.Auth.logout)
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, fault.New(fault.NotFound, "there is no %s %s", r.Method, r.URL.Path))
	})
	mux.Handle("/", page.Handler())
	foreign := http.NewCrossOriginProtection()
	foreign.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuse(w, fault.New(fault.Permission, "the request comes from a page of elsewhere (%s)", r.Header.Get("Origin")))
	}))
	return guarded(s.cfg.Hosts, foreign.Handler(mux))
}

// description says what the page asks, for who wants to ask the same: OpenAPI 3.
//
//go:embed openapi.yaml
var description []byte

func described(w http.ResponseWriter, _ *http.Request) (any, error) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(description) // who is gone needs no answer
	return nil, nil
}
