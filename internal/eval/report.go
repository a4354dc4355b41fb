package eval

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/stepjet/stepjet/outcome"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Verdict is what became of one case.
type Verdict struct {
	Name      string
	Run       string // run id; "" where none was started
	Right     bool
	Status    outcome.RunStatus
	Want      json.RawMessage // the known answer
	Got       json.RawMessage // the output's result; nil for none
	Why       string          // for a wrong answer, in a sentence
	Steps     int             // without those that were not taken
	Succeeded int
	Took      time.Duration // from submit to outcome
}

// judge compares an outcome with the known answer.
func (v *Verdict) judge(out *outcome.Outcome) {
	results := taken(out)
	switch {
	case len(out.Problems) > 0:
		v.Why = fmt.Sprintf("%s: %s at %q: %s", out.Status, out.Problems[0].Code, out.Problems[0].Path,
			out.Problems[0].Message)
	case len(out.Output) > 0:
		v.compareValue(out.Output)
	case len(results) == 0 && len(out.Errors) > 0:
		e := out.Errors[0]
		v.Why = fmt.Sprintf("%s: step %s: %s: %s", out.Status, e.Step, e.Code, e.Message)
	case len(results) == 0:
		v.Why = string(out.Status) + ": no result"
	default:
		v.compare(results)
	}
}

// taken returns the results of steps that were taken: of two branches the answer is that of the one.
func taken(out *outcome.Outcome) outcome.Results {
	if len(out.NotTaken) == 0 {
		return out.Results
	}
	not := make(map[string]bool, len(out.NotTaken))
	for _, step := range out.NotTaken {
		not[step] = true
	}
	return slices.DeleteFunc(slices.Clone(out.Results), func(r outcome.Result) bool { return not[r.Step] })
}

// compare takes the single output's result; a plan with several outputs is compared as the object of all of them.
func (v *Verdict) compare(results outcome.Results) {
	got := results[0].JSON
	if len(results) > 1 {
		got, _ = results.MarshalJSON() // it never fails: the values are JSON already
	}
	v.compareValue(got)
}

func (v *Verdict) compareValue(got json.RawMessage) {
	v.Got = got
	if v.Right = Equal(v.Want, v.Got); !v.Right {
		v.Why = fmt.Sprintf("want %s, got %s", clip(v.Want), clip(v.Got))
	}
}

// clip keeps a report readable when an answer is large.
func clip(raw []byte) string {
	const limit = 120
	if len(raw) <= limit {
		return string(raw)
	}
	return fmt.Sprintf("%s… (%d bytes)", raw[:limit], len(raw))
}

// MarshalJSON writes {"name","run","right","status","want","got","why","steps","ms"}.
func (v Verdict) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name   string            `json:"name"`
		Run    string            `json:"run,omitempty"`
		Right  bool              `json:"right"`
		Status outcome.RunStatus `json:"status,omitempty"`
		Want   json.RawMessage   `json:"want"`
		Got    json.RawMessage   `json:"got,omitempty"`
		Why    string            `json:"why,omitempty"`
		Steps  int               `json:"steps"`
		MS     float64           `json:"ms"`
	}{v.Name, v.Run, v.Right, v.Status, v.Want, v.Got, v.Why, v.Steps, ms(v.Took)})
}

// Report is what an evaluation came to.
type Report struct {
	Total, Right int
	Steps        int           // steps of all plans that ran
	Succeeded    int           // of them, those that succeeded
	Elapsed      time.Duration // from the first submit to the last outcome
	P50, P99     time.Duration // of a plan, from submit to outcome
	Verdicts     []Verdict     // in the order of the file
}

func newReport(verdicts []Verdict, elapsed time.Duration) *Report {
	r := &Report{Total: len(verdicts), Elapsed: elapsed, Verdicts: verdicts}
	took := make([]time.Duration, 0, len(verdicts))
	for _, v := range verdicts {
		if v.Right {
			r.Right++
		}
		r.Steps += v.Steps
		r.Succeeded += v.Succeeded
		if v.Run != "" {
			took = append(took, v.Took)
		}
	}
	slices.Sort(took)
	r.P50, r.P99 = quantile(took, 0.50), quantile(took, 0.99)
	return r
}

// quantile returns the value below which the share q of sorted values lies (nearest rank); 0 for none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	i := int(q*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// StepsPerSecond returns the succeeded steps per second of elapsed time.
func (r *Report) StepsPerSecond() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Succeeded) / r.Elapsed.Seconds()
}

// Wrong returns the verdicts that were not right.
func (r *Report) Wrong() []Verdict {
	var wrong []Verdict
	for _, v := range r.Verdicts {
		if !v.Right {
			wrong = append(wrong, v)
		}
	}
	return wrong
}

// MarshalJSON writes the figures and every case; "differed" holds the wrong ones.
func (r *Report) MarshalJSON() ([]byte, error) {
	wrong := r.Wrong()
	if wrong == nil {
		wrong = []Verdict{}
	}
	return json.Marshal(struct {
		Total          int       `json:"total"`
		Right          int       `json:"right"`
		Steps          int       `json:"steps"`
		ElapsedMS      float64   `json:"elapsed_ms"`
		P50MS          float64   `json:"p50_ms"`
		P99MS          float64   `json:"p99_ms"`
		StepsPerSecond float64   `json:"steps_per_second"`
		Differed       []Verdict `json:"differed"`
		Cases          []Verdict `json:"cases"`
	}{r.Total, r.Right, r.Steps, ms(r.Elapsed), ms(r.P50), ms(r.P99), round1(r.StepsPerSecond()), wrong, r.Verdicts})
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func round1(f float64) float64 { return float64(int64(f*10+0.5)) / 10 }
