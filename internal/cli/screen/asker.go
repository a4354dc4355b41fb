package screen

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// Board is where the questions of runs stand, and where they are answered: a client.
type Board interface {
	Questions(ctx context.Context, run string) ([]*outcome.Question, error)
	Question(ctx context.Context, run, step string) (*outcome.Question, error)
	Approve(ctx context.Context, q *outcome.Question, a client.Answer) (*client.Answered, error)
	Reject(ctx context.Context, q *outcome.Question, a client.Answer) (*client.Answered, error)
	Answer(ctx context.Context, q *outcome.Question, value json.RawMessage, a client.Answer) (*client.Answered, error)
}

// Asked is how the questions of a run are asked.
type Asked struct {
	Screen *Screen
	In     *os.File // where answers are typed
	Board  Board
	Run    string
	By     string // who answers, as they name themselves
	// Patience bounds one request.
	Patience func(context.Context) (context.Context, context.CancelFunc)
	// Stands says in a line what was decided, and Instead why nobody is asked about a step any more.
	Stands  func(*client.Answered) string
	Instead func(ctx context.Context, run, step string) string
	// Command is the command that answers a question.
	Command func(*outcome.Question) string
	// Bold and Dim are how a line stands out, or stands back.
	Bold, Dim func(string) string
}

// Asker asks one question of a run after the other, and passes on what is typed. It owns a goroutine, which Close ends.
type Asker struct {
	Asked
	whole context.Context // an answer that is on its way is told of though Close was called: it may be what ended the run
	ctx   context.Context // ends with Close
	end   context.CancelFunc
	look  chan struct{} // there may be something to ask, or to withdraw
	ends  sync.WaitGroup

	step atomic.Pointer[string] // that is asked about; nil: none is

	// What follows belongs to the goroutine.
	keys  *keys // nil: nobody is asked
	typed chan typed
	now   *outcome.Question // is asked; nil where Enter is waited for, after one that was withdrawn, or nothing
	dealt map[string]bool   // questions that are not asked again
	told  bool              // that questions can't be read
	looks int               // how often it looks still though nobody is asked
}

// Ask begins to ask what a run asks, until Close is called or ctx ends.
func Ask(ctx context.Context, by Asked) *Asker {
	p := &Asker{Asked: by, look: make(chan struct{}, 1), dealt: map[string]bool{}}
	p.whole = ctx
	p.ctx, p.end = context.WithCancel(ctx)
	p.ends.Go(p.loop)
	return p
}

// Event tells of what happens to the run.
func (p *Asker) Event(e client.Event) {
	about := p.step.Load()
	if e.Kind != subjects.EventQuestion && e.Status != outcome.StepAsking && (about == nil || *about != e.Step) {
		return // what else ends a question is seen with the next look
	}
	select {
	case p.look <- struct{}{}:
	default: // it is about to look
	}
}

// Close withdraws what is asked, and puts the terminal back in order.
func (p *Asker) Close() {
	p.end()
	p.ends.Wait()
}

const (
	// lookEvery is how often the questions are read while one is asked, or one is awaited whose event came before it.
	lookEvery = 500 * time.Millisecond
	// lookMost is how often one is looked for that was told of.
	lookMost = 20
)

func (p *Asker) loop() {
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	defer p.leave("")
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.look:
			p.looks = lookMost
			p.read()
		case <-t.C:
			if p.looks > 0 || p.keys != nil {
				p.looks = max(p.looks-1, 0)
				p.read()
			}
		case x := <-p.typed:
			if p.keys.counts(x) {
				p.take(x.keys)
			}
		}
	}
}

// read compares what the run asks with what is asked here.
func (p *Asker) read() {
	ctx, cancel := p.Patience(p.ctx)
	defer cancel()
	open, err := p.Board.Questions(ctx, p.Run)
	if err != nil {
		p.blind(err)
		return
	}
	asks := func(q *outcome.Question) bool {
		return slices.ContainsFunc(open, func(o *outcome.Question) bool { return same(q, o) })
	}
	if p.now != nil && !asks(p.now) {
		p.withdraw()
	}
	if p.now != nil || p.keys != nil && p.Screen.Asks() {
		return
	}
	open = slices.DeleteFunc(open, func(q *outcome.Question) bool { return p.dealt[name(q)] })
	if len(open) == 0 {
		p.leave("")
		return
	}
	q, err := p.Board.Question(ctx, p.Run, open[0].Step)
	if err != nil || p.dealt[name(q)] {
		return
	}
	p.ask(q, len(open)-1)
}

// blind says, once, that questions can't be read; the next look may tell, unless it is not for this person to see them.
func (p *Asker) blind(err error) {
	f := fault.As(err)
	if p.ctx.Err() != nil || p.told || f.Code != fault.Permission && p.looks > 0 {
		return
	}
	p.told, p.looks = true, 0
	p.say("what the run asks of people can't be read here: "+text.OneLine(f.Message), "  to see it: stepjet questions list "+text.OneLine(p.Run))
}

// name tells a question from all others of its run.
func name(q *outcome.Question) string {
	return fmt.Sprintf("%s %d %d %s", q.Step, q.Number, q.Revision, q.Digest)
}

func same(a, b *outcome.Question) bool { return name(a) == name(b) }

// ask puts a question on the screen. What was typed before is no answer to it.
func (p *Asker) ask(q *outcome.Question, more int) {
	if p.keys == nil {
		k, err := listen(p.In, p.Screen.Again)
		if err != nil {
			p.dealt[name(q)] = true
			p.say("it can't be asked here; to answer: " + text.OneLine(p.Command(q)))
			return
		}
		p.keys, p.typed = k, k.typed
	}
	p.now = q
	p.step.Store(&q.Step)
	width, _ := p.Screen.Size()
	p.say(p.wording(q, more, width)...)
	p.prompt()
}

func (p *Asker) prompt() {
	p.keys.forget()
	p.Screen.Ask(prompt(p.now))
}

func (p *Asker) say(lines ...string) { _, _ = p.Screen.Write([]byte(strings.Join(lines, "\n") + "\n")) }

// withdraw takes a question back that others have answered, or that nobody has to answer any more. Where somebody has
// begun to type an answer, the next question waits for the end of that.
func (p *Asker) withdraw() {
	q, typed := p.now, p.Screen.Typed()
	p.dealing(q)
	p.keys.forget()
	p.Screen.Withdraw(p.Dim("withdrawn: " + text.OneLine(p.Instead(p.ctx, q.Run, q.Step))))
	if typed {
		p.Screen.Ask("what was typed is for nobody now; Enter to go on: ")
	}
}

// dealing notes that a question is not asked any more; there may be another in its place.
func (p *Asker) dealing(q *outcome.Question) {
	p.dealt[name(q)], p.now, p.looks = true, nil, lookMost
	p.step.Store(nil)
}

// leave puts the terminal back in order.
func (p *Asker) leave(instead string) {
	if p.keys != nil {
		p.Screen.Withdraw(instead)
		p.keys.close()
		p.keys, p.typed, p.now = nil, nil, nil
	}
}

// take takes keys that were typed.
func (p *Asker) take(keys []byte) {
	typed, entered := p.Screen.Type(keys)
	q := p.now
	switch typed = strings.TrimSpace(typed); {
	case !entered:
		return
	case q == nil: // of one that was withdrawn
	case typed == "":
		p.dealing(q)
		p.say("left open; to answer: " + text.OneLine(p.Command(q)))
	case p.answer(q, typed):
		p.dealing(q)
	case p.ctx.Err() == nil:
		p.prompt()
		return
	}
	p.read()
}

// answer passes on what was typed, says what came of it, and reports whether the question is dealt with.
func (p *Asker) answer(q *outcome.Question, typed string) (dealt bool) {
	ctx, cancel := p.Patience(p.whole)
	defer cancel()
	stands, err := p.give(ctx, q, typed)
	switch {
	case p.whole.Err() != nil:
		return false
	case err == nil && stands == nil:
		p.say("y or n")
		return false
	case err == nil:
		p.say(p.Bold(p.Stands(stands)))
		return true
	}
	f := fault.As(err)
	why := []string{p.Bold(string(f.Code)+":") + " " + text.OneLine(f.Message)}
	if f.Hint != "" {
		why = append(why, "  "+p.Dim("hint:")+" "+text.OneLine(f.Hint))
	}
	p.say(why...)
	return slices.Contains(settled, f.Code)
}

// settled are the codes of answers after which the same question isn't asked again: something else stands, or nobody is
// asked, or it isn't for this person to say.
var settled = []fault.Code{
	fault.Conflict, fault.AlreadyFinished, fault.NotFound, fault.Overtaken, fault.Permission, fault.NotPermitted,
}

// give passes on what was typed; nothing stands where that says neither yes nor no.
func (p *Asker) give(ctx context.Context, q *outcome.Question, typed string) (*client.Answered, error) {
	by := client.Answer{By: p.By}
	if q.Kind == outcome.Ask {
		return p.Board.Answer(ctx, q, Value(typed), by)
	}
	word, reason, _ := strings.Cut(typed, " ")
	by.Reason = strings.TrimSpace(reason)
	switch strings.ToLower(word) {
	case "y", "yes":
		return p.Board.Approve(ctx, q, by)
	case "n", "no":
		return p.Board.Reject(ctx, q, by)
	}
	return nil, nil
}

// Value is what a person wrote as an answer: JSON, or else a text.
func Value(written string) json.RawMessage {
	if value := json.RawMessage(written); json.Valid(value) {
		return value
	}
	value, _ := json.Marshal(written) // a string: it can't fail
	return value
}
