package outcome

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

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
// client reads one for each run, and encoding/json, which goes over the results again and again, took a third of its CPU.
// It reports false for all else, which is read by encoding/json.
func readPlain(b []byte) (o Outcome, ok bool) {
	if !json.Valid(b) {
		return o, false
	}
	seen := 0
	ok = members(gjson.ParseBytes(b), func(name string, value gjson.Result) bool {
		seen++
		switch name {
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
			o.Errors, ok = []StepError{}, value.Raw == "[]"
		case "stats":
			o.Stats, ok = readStats(value)
		default:
			ok = false
		}
		return ok
	})
	return o, ok && seen == 5 && o.Run != "" && o.Status != "" && o.Results != nil && o.Errors != nil
}

// members calls each with the members of an object whose names are plain text, until it reports false. It reports whether
// there was nothing else.
func members(object gjson.Result, each func(name string, value gjson.Result) bool) (ok bool) {
	if !object.IsObject() {
		return false
	}
	ok = true
	object.ForEach(func(key, value gjson.Result) bool {
		var name string
		if name, ok = text(key); ok {
			ok = each(name, value)
		}
		return ok
	})
	return ok
}

// text gives a string that means what stands there.
func text(v gjson.Result) (string, bool) {
	if v.Type != gjson.String || strings.IndexByte(v.Raw, '\\') >= 0 || !utf8.ValidString(v.Raw) {
		return "", false
	}
	return v.Str, true
}

func number(v gjson.Result) (uint64, bool) {
	n, err := strconv.ParseUint(v.Raw, 10, 64)
	return n, err == nil
}

func readResults(v gjson.Result) (Results, bool) {
	all := Results{}
	ok := members(v, func(step string, value gjson.Result) bool {
		all = append(all, Result{step, json.RawMessage(value.Raw)})
		return true
	})
	return all, ok
}

func readStats(v gjson.Result) (s Stats, ok bool) {
	ok = members(v, func(name string, value gjson.Result) bool {
		if name == "elapsed_ms" {
			var err error
			s.ElapsedMS, err = strconv.ParseFloat(value.Raw, 64)
			return err == nil
		}
		n, err := strconv.ParseInt(value.Raw, 10, 64)
		switch name {
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
