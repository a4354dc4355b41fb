package subjects

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Beats are how workers say that they live: beat.<user>.<worker>. Each user may publish below its own name alone, so
// that a worker can lie about itself, and about those that share its user, but about no other.

const (
	// AllBeats matches the beats of all workers.
	AllBeats = "beat.*.*"
	// AskBeats is where a reader that has just come asks all workers to beat now. Nobody answers it as a request.
	AskBeats = "beat.ask"
	// MaxWorker bounds a worker's name, in bytes.
	MaxWorker = 128

	// noUser stands for the user of a worker whose inboxes do not name one.
	noUser = "_"
)

// Beat returns the subject that a worker says on that it lives. prefix is that of its connection's inboxes: where
// permissions are printed, it is that of its user (InboxPrefix).
func Beat(prefix, worker string) string {
	user, named := strings.CutPrefix(prefix, inboxes)
	if _, ok := Decode(user); !named || !ok {
		user = noUser
	}
	return "beat." + user + "." + Encode(worker)
}

// BeatsOf matches the beats of the workers of one user.
func BeatsOf(user string) string { return "beat." + Encode(user) + ".*" }

// ParseBeat reads the subject of a beat; user is empty for a worker whose inboxes name none.
func ParseBeat(subject string) (user, worker string, ok bool) {
	rest, ok := strings.CutPrefix(subject, "beat.")
	if !ok {
		return "", "", false
	}
	user, worker, _ = strings.Cut(rest, ".")
	user, known := Decode(user)
	worker, ok = Decode(worker)
	if !known || !ok || len(user) > MaxWorker || !ValidWorker(worker) {
		return "", "", false
	}
	if user == noUser {
		user = ""
	}
	return user, worker, true
}

// ValidWorker reports whether s is a worker's name: 1 to 128 printable bytes.
func ValidWorker(s string) bool {
	return s != "" && len(s) <= MaxWorker && utf8.ValidString(s) &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
