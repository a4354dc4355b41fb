package hosted

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/wire"
)

// refused makes an error of a response that is no success. 408, 425, 429 and 5xx may pass and are worth another
// attempt; the rest is not. One whose body is an error with the code replan asks for a new plan.
func (r *request) refused(resp *http.Response, secrets wire.Context, now time.Time) error {
	start, _ := io.ReadAll(io.LimitReader(resp.Body, tailLimit)) // what can't be read is not in the message
	text := strings.TrimSpace(printable(string(start)))
	if len(start) == tailLimit {
		text = wire.NewRedactor(secrets).Excerpt(text) + "…"
	}
	if e := wire.AsksToReplan(start); e != nil {
		e.Message, e.Hint = printable(e.Message), printable(e.Hint)
		return e
	}
	message := fmt.Sprintf("%s answered %q with %d %s", r.base, r.name, resp.StatusCode, http.StatusText(resp.StatusCode))
	if text != "" {
		message += ": " + text
	}
	e := fault.New(fault.ToolTerminal, "%s", message)
	if passing(resp.StatusCode) {
		e = fault.New(fault.ToolFailed, "%s", message)
		e.RetryAfter = RetryAfter(resp.Header.Get("Retry-After"), now)
	}
	e.Details = fmt.Appendf(nil, `{"status":%d}`, resp.StatusCode)
	return e
}

func passing(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// maxRetryAfter bounds what a server may ask for: a run's longest time.
const maxRetryAfter = 168 * time.Hour

// RetryAfter reads the header Retry-After (RFC 9110, 10.2.3), seconds or a date; 0 for anything else.
func RetryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseUint(value, 10, 63); err == nil {
		if seconds > uint64(maxRetryAfter/time.Second) {
			return maxRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
