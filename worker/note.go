package worker

import (
	"context"
	"encoding/json"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// Note stores what the next worker has to find again that is handed the same attempt, such as the handle of a job which
// the handler began elsewhere. It is stored once: Note returns what stands, which is another's where that was first. A
// later attempt has a note of its own. note is JSON of 4 KiB at most, and is not to hold secrets. A tool that relies on it
// says so in its contract (tool.Orchestration.Note): then no orchestrator goes on with its runs that doesn't know of notes.
//
// Errors: invalid_value for what is no such note; already_finished where the run is over; permission where the worker
// may not write notes; newer_version, invalid_record; the end of ctx; invalid_config outside of a handler, and in a
// batch.
func Note(ctx context.Context, note json.RawMessage) (stands json.RawMessage, err error) {
	x, err := noting(ctx)
	if err != nil {
		return nil, err
	}
	if len(note) > wire.MaxNote || !json.Valid(note) {
		return nil, fault.New(fault.InvalidValue, "a note is JSON of %d bytes at most", wire.MaxNote)
	}
	ledger := x.e.store.Ledger
	fence := &kv.Fence{Subject: subjects.PlanRecord(x.attempt.Run, ledger.Shards()), Seq: x.attempt.Generation}
	var decision kv.Decision
	err = x.again("noting what the next worker needs", forbidden, func() (err error) {
		h, body := wire.NoteMessage(x.e.config.Name, note)
		decision, _, err = ledger.Create(ctx, subjects.NoteRecord(x.attempt, ledger.Shards()), h, body, fence)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case decision == kv.Gone:
		return nil, fault.New(fault.AlreadyFinished, "run '%s' had finished already", x.attempt.Plain())
	case decision == kv.Written:
		return note, nil
	}
	return readNote(ctx, x)
}

// Noted returns what a worker that was handed the same attempt before has noted of it; nil where none has. Errors are
// those of Note.
func Noted(ctx context.Context) (json.RawMessage, error) {
	x, err := noting(ctx)
	if err != nil {
		return nil, err
	}
	return readNote(ctx, x)
}

func noting(ctx context.Context) (*execution, error) {
	x, _ := ctx.Value(executionKey{}).(*execution)
	if x == nil {
		return nil, fault.New(fault.InvalidConfig, "something is noted of a step, and this is no handler of one")
	}
	return x, nil
}

func readNote(ctx context.Context, x *execution) (note json.RawMessage, err error) {
	ledger := x.e.store.Ledger
	var there *kv.Entry
	err = x.again("reading what a worker has noted", forbidden, func() (err error) {
		there, err = ledger.Read(ctx, subjects.NoteRecord(x.attempt, ledger.Shards()))
		if isNotFound(err) {
			there, err = nil, nil
		}
		return err
	})
	if err != nil || there == nil {
		return nil, err
	}
	return wire.ParseNote(there.Header, there.Data)
}

func forbidden(err error) bool { return fault.CodeOf(err) == fault.Permission }
