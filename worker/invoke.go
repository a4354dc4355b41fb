package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/wire"
)

// caller is who calls a handler: one step, or a batch.
type caller interface {
	returned(out Output, err error)
	redactor() *wire.Redactor
	log() *slog.Logger
}

// invoke calls a handler and hands on whatever comes out of it: a result, an error, a panic, or the end of the
// goroutine.
func invoke(ctx context.Context, h Handler, args json.RawMessage, by caller) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if p := recover(); p != nil {
			err, clean := panicked(p), by.redactor()
			by.log().Error("the tool panicked", "panic", clean.Text(err.Error()), "stack", clean.Text(string(debug.Stack())))
			by.returned(Output{}, err)
			return
		}
		by.returned(Output{}, errors.New("the tool ended its goroutine (runtime.Goexit) instead of returning"))
	}()
	out, err := h(ctx, args)
	returned = true
	by.returned(out, err)
}

// panicked makes an error of a panic. Printing the value is the tool's code as well, and may panic again.
func panicked(p any) (err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("panic: a %T", p)
		}
	}()
	return fmt.Errorf("panic: %v", p)
}

// describe is failure for errors whose own Error method panics.
func describe(err error) (f *fault.Error) {
	defer func() {
		if p := recover(); p != nil {
			f = fault.New(fault.ToolFailed, "the tool failed with a %T that can't be printed", err)
		}
	}()
	return failure(err)
}
