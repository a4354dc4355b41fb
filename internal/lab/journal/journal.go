// Package journal is what processes of the laboratory write down of what they do, flushed line by line, so that a kill
// takes nothing back; and how it is read.
package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"
)

// The kinds of events.
const (
	Submit  = "submit"  // an agent is about to send a plan
	Accept  = "accept"  // the ledger has it
	Refuse  = "refuse"  // the submit ended with an error: unknown or refused, see Code
	Outcome = "outcome" // the agent was told an outcome
	Cancel  = "cancel"  // the agent asked for a cancel; Code is the answer
	Begin   = "begin"   // a tool was called
	Effect  = "effect"  // it did what can't be undone
	End     = "end"     // it returns
	Bare    = "bare"    // a message passed through JetStream without Stepjet

	Sent = "sent" // a step of a living run was sent to its queue, as the harness saw it

	// Of clients of living runs. Key is the label of an amendment, Step its scope, Revision the number that it has or would
	// have.
	Join     = "join"     // a client takes part in a run that another submitted
	Ask      = "ask"      // it is about to ask for an amendment
	Amended  = "amended"  // it was told what became of that; Code is empty where it is in force
	Question = "question" // it sees a question; Args is the digest of the arguments that it shows
	Answered = "answered" // it was told what became of its answer; Status is what it said
	Forged   = "forged"   // it answered with the digest of nothing; Code is what it was told
)

// Begins reports whether an event is the beginning of a call.
func (e *Event) Begins() bool { return e.Kind == Begin }

// Event is one line of a log. Which fields are set depends on the kind.
type Event struct {
	Kind string `json:"ev"`
	// At is the wall clock, in Unix nanoseconds. All processes share one machine, and so one clock.
	At   int64  `json:"at"`
	Who  string `json:"who"`
	Run  string `json:"run"`
	Code string `json:"code,omitempty"`

	// Of a plan: its digest. Of an outcome: its status and the digest of its bytes.
	Digest string `json:"digest,omitempty"`
	Status string `json:"status,omitempty"`

	// Of an execution; the generation of an accepted plan and of an outcome, too, where it is known.
	Tenant     string `json:"tenant,omitempty"`
	Generation uint64 `json:"gen,omitempty"`
	Step       string `json:"step,omitempty"`
	Tool       string `json:"tool,omitempty"`
	Attempt    int    `json:"attempt,omitempty"`
	Delivery   int    `json:"delivery,omitempty"`
	Key        string `json:"key,omitempty"`
	Args       string `json:"args,omitempty"`   // the digest of the arguments' value
	Secret     string `json:"secret,omitempty"` // whose secret came along: a run, never the secret itself
	Revision   int    `json:"revision,omitempty"`
}

// Log is a file of events. Add returns when the event is on the disk; events that wait together share one flush.
type Log struct {
	who  string
	file *os.File
	// Unflushed leaves what was written to the machine, which may lose it with its power.
	Unflushed bool

	mu      sync.Mutex
	pending []byte
	waiting []chan error
	busy    bool
}

// Open opens a log for appending.
func Open(path, who string) (*Log, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return &Log{who: who, file: f}, err
}

// Write writes what is no event, as a kill may leave it.
func (l *Log) Write(b []byte) (int, error) { return l.file.Write(b) }

// Close closes the file. Nothing may be added any more.
func (l *Log) Close() { _ = l.file.Close() } // every event was flushed when Add returned

// Add writes an event and waits until it is on the disk. It ends the process if that is impossible: an effect that
// nobody can know of must not happen.
func (l *Log) Add(e Event) {
	e.Who, e.At = l.who, time.Now().UnixNano()
	line, _ := json.Marshal(e) // strings and numbers: it can't fail
	done := make(chan error, 1)
	l.mu.Lock()
	l.pending = append(append(l.pending, line...), '\n')
	l.waiting = append(l.waiting, done)
	first := !l.busy
	l.busy = true
	l.mu.Unlock()
	if first {
		go l.flush()
	}
	if err := <-done; err != nil {
		panic(err) // evidence that can't be written must not pass for evidence that there was none
	}
}

func (l *Log) flush() {
	for {
		l.mu.Lock()
		text, waiting := l.pending, l.waiting
		l.pending, l.waiting = nil, nil
		if l.busy = len(waiting) > 0; !l.busy {
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		_, err := l.file.Write(text)
		if err == nil && !l.Unflushed {
			err = l.file.Sync()
		}
		for _, w := range waiting {
			w <- err
		}
	}
}

// Read reads a log. A last line that was cut off by a kill is left out, and a log that is not there has no events.
func Read(path string) (events []Event, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for s := bufio.NewReader(f); ; {
		line, err := s.ReadBytes('\n')
		if err != nil {
			return events, nil
		}
		var e Event
		if json.Unmarshal(line, &e) == nil { // a line that a killed process cut off is followed by its successor's
			events = append(events, e)
		}
	}
}
