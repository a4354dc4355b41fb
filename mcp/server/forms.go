package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/outcome"
)

// The bounds of forms.
const (
	mostForms = 16          // open at a time in a session
	mostAsked = 5           // times that a question is put whose answers are refused
	lookEvery = time.Second // that an open form's question is looked at: somebody else may have answered it
)

// forms are those that users of clients with sessions have before them. One outlives the call that showed it: a person
// takes longer than a client waits. It ends with its answer, its question, its session, or the server.
type forms struct {
	life *life
	runs *runs
	idle time.Duration // a session is over that was silent for so long

	mu      sync.Mutex
	of      map[*mcp.ServerSession]*sheaf // no session without an open form
	ending  map[string]int                // the sessions whose clients end them just now, by id
	stopped bool
}

// sheaf is a session's open forms.
type sheaf struct {
	forms map[formKey]*form
	timer *time.Timer // ends them when the session was silent for too long; nil: its stream's end tells
}

// formKey names a form within its session.
type formKey struct {
	who, run, question string
}

// form is one question before a client's user.
type form struct {
	who     Principal
	session *mcp.ServerSession
	q       *outcome.Question

	end     context.CancelFunc // withdraws it
	carrier atomic.Pointer[context.Context]
	done    chan struct{}
	err     error // why it is over, where it was not answered or left; read it once done is closed
}

// formContext is a form's: it ends with the form, and says what the context of the open call says that carries it. The
// SDK reads there which stream a message goes to, and refuses one for a call that has returned.
type formContext struct {
	context.Context
	f *form
}

func (c formContext) Value(key any) any {
	if carrier := c.f.carrier.Load(); carrier != nil {
		return (*carrier).Value(key)
	}
	return c.Context.Value(key)
}

func newForms(cfg *Config, l *life, r *runs) *forms {
	return &forms{life: l, runs: r, idle: cfg.sessionFor, of: map[*mcp.ServerSession]*sheaf{}, ending: map[string]int{}}
}

// open returns the form of a question in the session of a call, which carries it from now on: the one that is open, or
// a new one, and then fresh is true. nil: there is none, and none can be opened.
func (s *forms) open(carrier *context.Context, c *call, q *outcome.Question) (f *form, fresh bool) {
	session, key := c.req.Session, formKey{c.caller.Name, c.run, keyOf(q)}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.of[session]
	if all != nil && all.forms[key] != nil {
		f = all.forms[key]
		f.carrier.Store(carrier)
		return f, false
	}
	if s.stopped || s.life.ctx.Err() != nil || s.ending[session.ID()] > 0 || all != nil && len(all.forms) >= mostForms {
		return nil, false
	}
	if all == nil {
		all = &sheaf{forms: map[formKey]*form{}}
		if session.ID() != "" {
			all.timer = time.AfterFunc(s.idle, func() { s.silent(session) })
		}
		s.of[session] = all
	}
	inner, end := context.WithCancel(s.life.ctx)
	f = &form{who: c.caller, session: session, q: q, end: end, done: make(chan struct{})}
	f.carrier.Store(carrier)
	all.forms[key] = f
	s.life.working.Go(func() {
		defer end()
		s.watch(inner, f)
	})
	s.life.working.Go(func() {
		f.err = s.fill(formContext{inner, f}, f)
		s.close(f, key)
	})
	return f, true
}

// has reports whether a question's form is open in the session of a call.
func (s *forms) has(c *call, q *outcome.Question) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.of[c.req.Session]
	return all != nil && all.forms[formKey{c.caller.Name, c.run, keyOf(q)}] != nil
}

// fill puts a form to the client's user until its answer is taken.
func (s *forms) fill(ctx context.Context, f *form) (err error) {
	defer f.end()
	for range mostAsked {
		said := put(ctx, f.session, request(f.q, err))
		if said == nil {
			return nil // withdrawn, or a client that can't ask now: the run waits for another
		}
		filled, bad := filledBy(said)
		if bad != nil {
			return bad
		}
		// What was answered counts though the form is withdrawn meanwhile: it may be what ended the question.
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitWithin)
		err = s.runs.reply(within, f.who, f.q, filled)
		cancel()
		if !refused(err) {
			return err
		}
	}
	return err
}

// close takes a form out that is over.
func (s *forms) close(f *form, key formKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(f.done)
	all := s.of[f.session]
	delete(all.forms, key)
	if all.timer != nil {
		all.timer.Reset(s.idle) // it was heard of
	}
	if len(all.forms) == 0 {
		if all.timer != nil {
			all.timer.Stop()
		}
		delete(s.of, f.session)
	}
}

// watch returns when a form is over, or its question is not asked any more.
func (s *forms) watch(ctx context.Context, f *form) {
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	for gone := 0; gone < 2; { // a copy of the store that is behind may not have it yet
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
		all, err := s.runs.client.Questions(ctx, f.q.Run)
		if err != nil {
			continue // nothing is known of it
		}
		open := false
		for _, q := range all {
			open = open || keyOf(q) == keyOf(f.q)
		}
		if gone++; open {
			gone = 0
		}
	}
}

// heard says that a session is alive.
func (s *forms) heard(session mcp.Session) {
	one, _ := session.(*mcp.ServerSession)
	s.mu.Lock()
	defer s.mu.Unlock()
	if all := s.of[one]; all != nil && all.timer != nil {
		all.timer.Reset(s.idle)
	}
}

// silent ends the forms of a session that says nothing any more: the SDK, which ends it, would wait for their answers.
func (s *forms) silent(session *mcp.ServerSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.of[session]
	if all == nil {
		return
	}
	for _, f := range all.forms {
		if f.carrier.Load() != nil { // a call is open
			all.timer.Reset(s.idle)
			return
		}
	}
	for _, f := range all.forms {
		f.end()
	}
}

// leave ends the forms of a session that its client ends, and lets none be opened until done is called: the SDK waits for
// the answers of those that are open.
func (s *forms) leave(id string, who Principal) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending[id]++
	for session, all := range s.of {
		for _, f := range all.forms {
			if session.ID() == id && f.who.Name == who.Name {
				f.end()
			}
		}
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.ending[id]--; s.ending[id] == 0 {
			delete(s.ending, id)
		}
	}
}

// stop ends all forms, and lets none be opened any more.
func (s *forms) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for _, all := range s.of {
		for _, f := range all.forms {
			f.end()
		}
	}
}

type saidKey struct{}

// put asks the user of a client with a session; nil: nothing was said. What is wrong with an answer is for reply to say,
// and not for the SDK, which would keep the answer.
func put(ctx context.Context, session *mcp.ServerSession, form *mcp.ElicitParams) *mcp.ElicitResult {
	var said *mcp.ElicitResult
	_, _ = session.Elicit(context.WithValue(ctx, saidKey{}, &said), form)
	return said
}

// overhear keeps what a client's user said for put.
func overhear(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		if said, is := res.(*mcp.ElicitResult); is && err == nil {
			if into, there := ctx.Value(saidKey{}).(**mcp.ElicitResult); there {
				*into = said
			}
		}
		return res, err
	}
}
