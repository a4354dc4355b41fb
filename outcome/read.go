package outcome

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/internal/unknown"
)

// UnmarshalJSON reads what JSON writes, and keeps fields that this version doesn't know.
func (o *Outcome) UnmarshalJSON(b []byte) error {
	if plain, ok := readPlain(b); ok {
		*o = plain
		return nil
	}
	type plain Outcome // without this method
	if err := json.Unmarshal(b, (*plain)(o)); err != nil {
		return err
	}
	o.unknown = unknown.Of(b, outcomeNames)
	return nil
}

// readPlain reads an outcome as it is written nearly always: its own fields once each, and nothing unusual in them. A
// client reads one for each run, and encoding/json, which goes over the results again and again, took a third of its
// CPU. It reports false for all else, which is read by encoding/json.
func readPlain(b []byte) (o Outcome, ok bool) {
	if !readable(b) {
		return o, false
	}
	seen := 0
	ok = members(b, func(name, value []byte) bool {
		seen++
		switch string(name) {
		case "run":
			o.Run, ok = text(value)
		case "status":
			var s string
			s, ok = text(value)
			o.Status = RunStatus(s)
		case "generation": // older ones have none
			seen--
			o.Generation, ok = number(value)
		case "results":
			o.Results, ok = readResults(value)
		case "errors":
			o.Errors, ok = []StepError{}, string(value) == "[]"
		case "stats":
			o.Stats, ok = readStats(value)
		default:
			ok = false
		}
		return ok
	})
	return o, ok && seen == 5 && o.Run != "" && o.Status != "" && o.Results != nil && o.Errors != nil
}

// maxPlainDepth is deeper than any result within an outcome is nested.
const maxPlainDepth = 128

// readable reports whether b is JSON. Keys used twice and bad text are no matter here: what they come to is decided
// below, or they lie within results, which are not read.
func readable(b []byte) bool {
	s := jsontape.New(b, maxPlainDepth)
	defer s.Release()
	return s.Scan() == nil
}

// members calls each with the members of an object whose names are plain text, until it reports false. It reports
// whether there was nothing else.
func members(object []byte, each func(name, value []byte) bool) (ok bool) {
	return jsontape.Members(object, func(key, value []byte) bool {
		name, ok := plainText(key)
		return ok && each(name, value)
	})
}

// plainText returns what stands within the quotes of a string that means just that.
func plainText(v []byte) ([]byte, bool) {
	if v[0] != '"' || bytes.IndexByte(v, '\\') >= 0 || !utf8.Valid(v) {
		return nil, false
	}
	return v[1 : len(v)-1], true
}

func text(v []byte) (string, bool) {
	s, ok := plainText(v)
	return string(s), ok
}

func number(v []byte) (uint64, bool) {
	n, err := strconv.ParseUint(string(v), 10, 64)
	return n, err == nil
}

// readResults keeps nothing of v: all results lie in one copy of it.
func readResults(v []byte) (Results, bool) {
	all := Results{}
	ok := members(bytes.Clone(v), func(step, value []byte) bool {
		all = append(all, Result{string(step), value})
		return true
	})
	return all, ok
}

func readStats(v []byte) (s Stats, ok bool) {
	ok = members(v, func(name, value []byte) bool {
		if string(name) == "elapsed_ms" {
			var err error
			s.ElapsedMS, err = strconv.ParseFloat(string(value), 64)
			return err == nil
		}
		n, err := strconv.ParseInt(string(value), 10, 64)
		switch string(name) {
		case "steps":
			s.Steps = int(n)
		case "succeeded":
			s.Succeeded = int(n)
		case "failed":
			s.Failed = int(n)
		case "skipped":
			s.Skipped = int(n)
		case "cancelled":
			s.Cancelled = int(n)
		case "not_taken":
			s.NotTaken = int(n)
		case "items":
			s.Items = int(n)
		case "items_failed":
			s.ItemsFailed = int(n)
		case "bytes_returned":
			s.BytesReturned = n
		case "bytes_kept_out":
			s.BytesKeptOut = n
		case "tokens_kept_out_estimate":
			s.TokensKeptOut = n
		default:
			return false
		}
		return err == nil
	})
	return s, ok
}
