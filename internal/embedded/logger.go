package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
)

// failure remembers the fatal error that the server logged: it reports what keeps it from starting in no other way.
type failure struct {
	mu  sync.Mutex
	why string
}

func (f *failure) set(s string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.why == "" {
		f.why = s
	}
}

func (f *failure) get() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.why
}

// logger hands the server's warnings and errors on. It never ends the process, not even on Fatalf.
type logger struct {
	out    *slog.Logger
	failed *failure
}

func (l *logger) log(level slog.Level, format string, v []any) {
	if l.out != nil {
		l.out.Log(context.Background(), level, fmt.Sprintf(format, v...), "from", "nats-server")
	}
}

func (l *logger) Noticef(string, ...any)         {}
func (l *logger) Debugf(string, ...any)          {}
func (l *logger) Tracef(string, ...any)          {}
func (l *logger) Warnf(format string, v ...any)  { l.log(slog.LevelWarn, format, v) }
func (l *logger) Errorf(format string, v ...any) { l.log(slog.LevelError, format, v) }

func (l *logger) Fatalf(format string, v ...any) {
	l.failed.set(fmt.Sprintf(format, v...))
	l.log(slog.LevelError, format, v)
}
