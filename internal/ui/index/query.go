package index

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// Query says which runs to list. The zero value is the first 50 of all, those first that need attention.
type Query struct {
	// Tenants are those whose runs may be seen; nil: all.
	Tenants []string
	// Tenant, Status, Tool, From, To and Text are filters; empty ones keep all. From and To bound when a run was
	// submitted. Text is looked for in run ids, whatever the case of its letters.
	Tenant   string
	Status   []outcome.RunStatus
	Tool     string
	From, To time.Time
	Text     string
	// Newest lists by time alone.
	Newest bool
	// After is Page.Next of the page before.
	After string
	// Limit is the most lines of a page; 0: 50.
	Limit int
}

// DefaultLimit and MaxLimit are about the lines of one page.
const (
	DefaultLimit = 50
	MaxLimit     = 500
)

// Page is a part of a list.
type Page struct {
	Lines []Line
	// Next is Query.After of the next page; empty where this is the last one.
	Next string
	// Matched is how many runs the filters keep. Counts are by status, as if no status were filtered by, and Attention is
	// how many of those somebody should look after.
	Matched   int
	Counts    map[outcome.RunStatus]int
	Attention int
	Version   uint64
}

// List returns the page of a query. Errors: InvalidValue for an After that is none.
func (ix *Index) List(q Query) (Page, error) {
	after, err := parsePlace(q.After)
	if err != nil {
		return Page{}, err
	}
	if q.Limit <= 0 {
		q.Limit = DefaultLimit
	}
	q.Limit, q.Text = min(q.Limit, MaxLimit), strings.ToLower(q.Text)
	ix.mu.Lock()
	defer ix.mu.Unlock()
	p := Page{Counts: map[outcome.RunStatus]int{}, Version: ix.version}
	var first, rest []*entry // one more than fit
	of, known := ix.tools.number(q.Tool)
	for _, e := range ix.sorted() {
		if e.Status == "" || !q.keeps(&e.Line) || q.Tool != "" && !(known && holds(e.tools, of)) {
			continue
		}
		p.Counts[e.Status]++
		attention := e.Attention()
		if attention {
			p.Attention++
		}
		if len(q.Status) > 0 && !slices.Contains(q.Status, e.Status) {
			continue
		}
		p.Matched++
		here := placeOf(e, attention && !q.Newest)
		switch {
		case after != nil && !after.before(here):
		case here.first && len(first) <= q.Limit:
			first = append(first, e)
		case !here.first && len(rest) <= q.Limit:
			rest = append(rest, e)
		}
	}
	found := slices.Concat(first, rest)
	if len(found) > q.Limit {
		found = found[:q.Limit]
		last := found[q.Limit-1]
		p.Next = placeOf(last, last.Attention() && !q.Newest).String()
	}
	for _, e := range found {
		p.Lines = append(p.Lines, ix.line(e))
	}
	return p, nil
}

// keeps reports whether a run passes all filters but those of its status and its tools.
func (q *Query) keeps(l *Line) bool {
	tenant, id, _ := strings.Cut(l.Key, ".")
	switch {
	case q.Tenants != nil && !slices.Contains(q.Tenants, tenant),
		q.Tenant != "" && q.Tenant != tenant,
		!q.From.IsZero() && l.Submitted.Before(q.From),
		!q.To.IsZero() && !l.Submitted.Before(q.To):
		return false
	}
	return q.Text == "" || strings.Contains(strings.ToLower(plain(id)), q.Text)
}

// plain is Run.Plain; most ids have nothing that is encoded.
func plain(id string) string {
	if strings.IndexByte(id, '=') < 0 {
		return id
	}
	return subjects.Run{ID: id}.Plain()
}

// place is where a line stands in a list: a page begins behind that of the last line before it, whatever came or went
// meanwhile.
type place struct {
	first     bool // among those that need attention
	submitted int64
	key       string
}

func placeOf(e *entry, first bool) place { return place{first, e.Submitted.UnixNano(), e.Key} }

// before reports whether another place comes later in the list.
func (p *place) before(other place) bool {
	switch {
	case p.first != other.first:
		return p.first
	case p.submitted != other.submitted:
		return p.submitted > other.submitted
	default:
		return p.key < other.key
	}
}

func (p place) String() string {
	text := strconv.FormatBool(p.first) + " " + strconv.FormatInt(p.submitted, 36) + " " + p.key
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

func parsePlace(text string) (*place, error) {
	if text == "" {
		return nil, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if fields := strings.Split(string(raw), " "); err == nil && len(fields) == 3 {
		first, err1 := strconv.ParseBool(fields[0])
		at, err2 := strconv.ParseInt(fields[1], 36, 64)
		if err1 == nil && err2 == nil {
			return &place{first, at, fields[2]}, nil
		}
	}
	return nil, fault.New(fault.InvalidValue, "this is no place in a list").WithHint(`"after" is what "next" of the page before said`)
}
