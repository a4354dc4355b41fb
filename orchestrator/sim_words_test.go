package orchestrator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// In half of the worlds with an agent somebody says something to it now and then, and sometimes interrupts it. What was
// answered as heard is told in some request of its planner, once; whichever owner makes the request, it is the same.

// simWords are what was said to the agent of a run.
type simWords struct {
	recorded map[string]bool
	heard    map[string]bool // answered so
	cut      bool            // somebody has interrupted it
	told     map[string]bool // its planner was
}

func newSimWords() *simWords {
	return &simWords{recorded: map[string]bool{}, heard: map[string]bool{}, told: map[string]bool{}}
}

const (
	wordReply = "_INBOX.words."
	mostWords = 6
)

// saysTo lets somebody say the next word to the agent.
func (w *world) saysTo(id subjects.Run, n int) {
	if w.seed%2 == 0 || n == mostWords {
		return
	}
	w.at(w.upTo(w.knobs.faults/mostWords+50*time.Millisecond), func() {
		r := wire.SayRequest{Agent: "a", ID: fmt.Sprintf("w%d", n), Say: wire.Say{Content: fmt.Appendf(nil, "%q", wordOfSim(n)), By: "ann"}}
		if n%5 == 3 {
			r.Mode = wire.Interrupt
		}
		body, err := r.Body()
		if err != nil {
			panic(err)
		}
		for range 1 + w.Intn(2) {
			for _, o := range w.owners {
				o.after(w.latency(), func() {
					o.svc.request(&nats.Msg{Subject: subjects.API(id, subjects.VerbSay), Reply: wordReply + id.ID + "." + r.ID, Data: body})
				})
			}
		}
		w.saysTo(id, n+1)
	})
}

func wordOfSim(n int) string { return fmt.Sprintf("word w%d of ann", n) }

// sayRecorded checks that a word stands once, and is one that somebody said.
func (t *truths) sayRecorded(x *truth, rec subjects.Record, data []byte) {
	said := wire.ParseSay(data)
	switch {
	case !x.agent || x.start == nil || !bytes.Contains(said.Content, []byte(rec.What+" of ann")):
		t.w.violate("A7", "a word that nobody said: %s %s", rec.What, data)
	case x.words.recorded[rec.What]:
		t.w.violate("I2", "a second record of the word %s", rec.What)
	}
	x.words.recorded[rec.What] = true
	x.words.cut = x.words.cut || said.Mode == wire.Interrupt
	t.w.stats["a word stands"]++
}

// sayAnswered takes the answer to a word.
func (t *truths) sayAnswered(m *nats.Msg) (is bool) {
	rest, is := strings.CutPrefix(m.Subject, wordReply)
	if !is {
		return false
	}
	id, word, _ := strings.Cut(rest, ".")
	if err := wire.ParseRefusal(m.Header, m.Data); err != nil {
		t.w.stats["a word was refused: "+string(fault.CodeOf(err))]++
		switch fault.CodeOf(err) {
		case fault.AlreadyFinished, fault.InvalidID, fault.NotFound, fault.NotReady:
		default:
			t.w.violate("A7", "the word %s was refused: %v", word, err)
		}
		return true
	}
	var r wire.SayReply
	if err := json.Unmarshal(m.Data, &r); err != nil || r.ID != word {
		t.w.violate("A7", "the word %s was answered with %s", word, m.Data)
	}
	for _, x := range t.order {
		if x.id.ID == id && x.agent && x.words.recorded[word] {
			x.words.heard[word] = true
			t.w.stats["a word was heard"]++
		}
	}
	return true
}

// wordsAsked checks that a request has what was said, and each word once.
func (t *truths) wordsAsked(x *truth, whole []byte) {
	for n := range mostWords {
		switch times := bytes.Count(whole, []byte(wordOfSim(n))); {
		case times > 1:
			t.w.violate("A7", "the planner is told %d times of %s: %s", times, wordOfSim(n), whole)
		case times == 1 && !x.words.recorded[fmt.Sprintf("w%d", n)]:
			t.w.violate("A7", "the planner is told of %s, which does not stand", wordOfSim(n))
		case times == 1:
			x.words.told[fmt.Sprintf("w%d", n)] = true
		}
	}
}

// wordsTold checks that an agent that came to its output was told all that was answered as heard.
func (t *truths) wordsTold(x *truth, doc *outcome.Run) {
	unasked := false // the round that was to tell them began, and there was no budget left to ask its planner
	eachStep(doc.Steps, func(st *outcome.Step) { unasked = unasked || st.Error != nil && st.Error.Code == fault.BudgetExceeded })
	if doc.Status != outcome.Succeeded || x.swayed() || x.reused || unasked {
		return
	}
	for n := range mostWords {
		if word := fmt.Sprintf("w%d", n); x.words.heard[word] && !x.words.told[word] {
			t.w.violate("A7", "nobody told the planner of %s", wordOfSim(n))
		}
	}
	if slices.ContainsFunc([]string{"w0", "w1", "w2", "w3", "w4", "w5"}, func(id string) bool { return x.words.heard[id] }) {
		t.w.stats["an agent that was told something came to its end"]++
	}
}
