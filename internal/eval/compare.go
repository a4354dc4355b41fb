package eval

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// tolerance is the relative error up to which two numbers are the same answer.
const tolerance = 1e-6

// Equal reports whether a result gives a known answer.
//
// Where the answer is a number, the result has to be one too, or an object whose "result" is one; they agree if their
// relative error is at most 1e-6, or if the result rounded to as many decimals as the answer was published with is the
// answer (a tie may go either way). Any other answer has to be the same JSON value as the result or its "result":
// objects in any order of keys, numbers by value.
func Equal(answer, result []byte) bool {
	if want, ok := number(answer); ok {
		got, ok := number(result)
		if !ok {
			inner, found := resultField(result)
			if !found {
				return false
			}
			if got, ok = number(inner); !ok {
				return false
			}
		}
		return closeTo(got, want, string(bytes.TrimSpace(answer)))
	}
	if sameJSON(answer, result) {
		return true
	}
	inner, found := resultField(result)
	return found && sameJSON(answer, inner)
}

// number reads a JSON number.
func number(raw []byte) (float64, bool) {
	s := string(bytes.TrimSpace(raw))
	if s == "" || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

// resultField returns the field "result" of a JSON object.
func resultField(raw []byte) (json.RawMessage, bool) {
	var in map[string]json.RawMessage
	if json.Unmarshal(raw, &in) != nil {
		return nil, false
	}
	v, ok := in["result"]
	return v, ok
}

func closeTo(got, want float64, published string) bool {
	if got == want {
		return true
	}
	diff := math.Abs(got - want)
	if diff <= tolerance*math.Abs(want) {
		return true
	}
	half := 0.5 * math.Pow(10, -float64(decimals(published)))
	// The factor lets a tie such as 2.675 against 2.68 pass, which binary fractions only come close to.
	return diff <= half*(1+1e-9)
}

// decimals counts the digits after the decimal point of a JSON number, exponent included; never less than 0.
func decimals(s string) int {
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa = s[:i]
		exponent, _ = strconv.Atoi(s[i+1:]) // a JSON number that ParseFloat took; out of range is clamped by Atoi
	}
	n := 0
	if i := strings.IndexByte(mantissa, '.'); i >= 0 {
		n = len(mantissa) - i - 1
	}
	return max(0, n-exponent)
}

// sameJSON compares two JSON values; numbers are the same if their texts are, or their values as float64.
func sameJSON(a, b []byte) bool {
	x, ok := decode(a)
	if !ok {
		return false
	}
	y, ok := decode(b)
	return ok && same(x, y)
}

func decode(raw []byte) (any, bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil, false
	}
	return v, true
}

func same(x, y any) bool {
	switch x := x.(type) {
	case map[string]any:
		y, ok := y.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k, v := range x {
			if w, found := y[k]; !found || !same(v, w) {
				return false
			}
		}
		return true
	case []any:
		y, ok := y.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !same(x[i], y[i]) {
				return false
			}
		}
		return true
	case json.Number:
		y, ok := y.(json.Number)
		return ok && sameNumber(string(x), string(y))
	default:
		return x == y
	}
}

func sameNumber(x, y string) bool {
	if x == y {
		return true
	}
	a, errA := strconv.ParseFloat(x, 64)
	b, errB := strconv.ParseFloat(y, 64)
	return errA == nil && errB == nil && a == b
}
