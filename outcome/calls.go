package outcome

import (
	"math"
	"time"

	"github.com/stepjet/stepjet/fault"
)

// Calls is what the calls of one tool took and came to. An attempt that ended with a question to a person is no call, and
// neither its time is among the times nor that until the answer.
type Calls struct {
	// Calls is how many attempts came to a result, or to none; Failed how many of them did not succeed, Codes why.
	Calls  int                `json:"calls"`
	Failed int                `json:"failed,omitempty"`
	Codes  map[fault.Code]int `json:"codes,omitempty"`
	// Asked is how many attempts ended with a question.
	Asked int `json:"asked,omitempty"`
	// Ran is how long those executed of which that is known, Waited how long calls that were ready waited for a worker.
	Ran    Spans `json:"ran,omitempty"`
	Waited Spans `json:"waited,omitempty"`
}

// Spans counts spans of time by their length: under the number b those that are longer than 2^((b-1)/4) milliseconds and not
// longer than 2^(b/4), under 0 those up to one. So each is known within nine percent, and many take little room.
type Spans map[int]int

// longestSpan is the number of all that are longer than six weeks.
const longestSpan = 127

// Add counts a span.
func (s *Spans) Add(d time.Duration) {
	if *s == nil {
		*s = Spans{}
	}
	b := 0
	if ms := float64(d) / float64(time.Millisecond); ms > 1 {
		b = min(int(math.Ceil(4*math.Log2(ms))), longestSpan)
	}
	(*s)[b]++
}

// Quantile returns what a part of the spans does not exceed, in milliseconds; -1 of none.
func (s Spans) Quantile(part float64) float64 {
	all, last := 0, 0
	for b, n := range s {
		all, last = all+n, max(last, b)
	}
	at := max(int(math.Ceil(part*float64(all))), 1)
	for b := 0; b <= last && all > 0; b++ {
		if at -= s[b]; at <= 0 {
			return math.Pow(2, max(0, float64(b)-0.5)/4) // the middle
		}
	}
	return -1
}

// Merge adds what another says.
func (c *Calls) Merge(o *Calls) {
	c.Calls, c.Failed, c.Asked = c.Calls+o.Calls, c.Failed+o.Failed, c.Asked+o.Asked
	for code, n := range o.Codes {
		c.fail(code, n)
	}
	merge(&c.Ran, o.Ran)
	merge(&c.Waited, o.Waited)
}

func merge(into *Spans, from Spans) {
	if *into == nil && len(from) > 0 {
		*into = Spans{}
	}
	for b, n := range from {
		if b >= 0 && b <= longestSpan && n > 0 { // anybody's header is read
			(*into)[b] += n
		}
	}
}

func (c *Calls) fail(code fault.Code, n int) {
	if c.Codes == nil {
		c.Codes = map[fault.Code]int{}
	}
	c.Codes[code] += n
}

// CallsOf returns what the calls of each tool took and came to, of some steps and of all that stands within them.
func CallsOf(steps []Step) map[string]*Calls {
	all := map[string]*Calls{}
	countCalls(steps, all)
	return all
}

func countCalls(steps []Step, all map[string]*Calls) {
	for i := range steps {
		s := &steps[i]
		countCalls(s.Items, all)
		countCalls(s.Steps, all)
		if s.Tool == "" || s.Reused || len(s.Items)+len(s.Steps) > 0 || s.Attempts == 0 {
			continue
		}
		c := all[s.Tool]
		if c == nil {
			c = &Calls{}
			all[s.Tool] = c
		}
		tries := s.Tries
		if len(tries) == 0 {
			tries = []Try{{Attempt: s.Attempts, Started: s.Started, Ended: s.Ended}}
			if s.Error != nil {
				tries[0].Code = s.Error.Code
			}
		}
		for k := range tries {
			c.count(s, &tries[k])
		}
	}
}

// count adds one attempt of a call. How long one waited that followed another is not known: it may have had to.
func (c *Calls) count(s *Step, t *Try) {
	if t.Attempt == 1 && !s.Ready.IsZero() && !t.Started.Before(s.Ready) {
		c.Waited.Add(t.Started.Sub(s.Ready))
	}
	if t.Asked {
		c.Asked++
		return
	}
	c.Calls++
	if t.Code != "" {
		c.Failed++
		c.fail(t.Code, 1)
	}
	if !t.Started.IsZero() && !t.Ended.Before(t.Started) {
		c.Ran.Add(t.Ended.Sub(t.Started))
	}
}
