package builtin

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
)

// Limits of numbers, so that neither an argument nor a result can keep a worker busy.
const (
	maxDigits = 20_000
	maxBits   = 66_438 // 10^20000 needs 66,439
)

// number is a number like Python's: an exact integer where its literal has neither fraction nor exponent, else a
// float64. Operations on integers stay exact; as soon as a float takes part, the result is a float.
type number struct {
	int   *big.Int // nil: a float
	float float64
}

func integer(i *big.Int) number { return number{int: i} }
func float(f float64) number    { return number{float: f} }

// parseNumber reads a JSON number literal. Integers of over 20,000 digits, and floats beyond float64, are refused.
func parseNumber(lit []byte) (number, error) {
	if len(lit) == 0 || lit[0] != '-' && (lit[0] < '0' || lit[0] > '9') || !json.Valid(lit) ||
		bytes.ContainsAny(lit, " \t\r\n") {
		return number{}, fault.New(fault.InvalidArguments, "%s is not a number", clip(lit)).
			WithHint("send a JSON number, without quotes")
	}
	if len(lit) > maxDigits+1 {
		return number{}, tooManyDigits("an argument")
	}
	if bytes.ContainsAny(lit, ".eE") {
		f, err := strconv.ParseFloat(string(lit), 64)
		if err != nil {
			return number{}, fault.New(fault.ToolTerminal, "%s is beyond the largest float (about 1.8e308)", clip(lit)).
				WithHint("write it as an integer, without fraction and exponent: integers are exact up to %d digits", maxDigits)
		}
		return float(f), nil
	}
	i, ok := new(big.Int).SetString(string(lit), 10)
	if !ok {
		return number{}, fault.New(fault.InvalidArguments, "%s is not a number", clip(lit))
	}
	if i.BitLen() > maxBits {
		return number{}, tooManyDigits("an argument")
	}
	return integer(i), nil
}

// checked refuses what JSON can't hold (infinities) and what is too long.
func checked(n number) (number, error) {
	if n.int != nil && n.int.BitLen() > maxBits {
		return number{}, tooManyDigits("the result")
	}
	if n.int == nil && (math.IsInf(n.float, 0) || math.IsNaN(n.float)) {
		return number{}, overflow()
	}
	return n, nil
}

func tooManyDigits(what string) error {
	return fault.New(fault.ToolTerminal, "%s has more than %d digits", what, maxDigits).
		WithHint("integers are exact up to %d digits; use smaller numbers, or floats (write 2.0 for 2)", maxDigits)
}

func overflow() error {
	return fault.New(fault.ToolTerminal, "the result is beyond the largest float (about 1.8e308)").
		WithHint("use smaller numbers, or integers, which are exact up to %d digits", maxDigits)
}

func clip(lit []byte) string { return text.Cut(string(lit), 40) }

// String returns the number's JSON form. A float is written as short as it can be read back exactly, and always so that
// it is read back as a float: 625.0, 1e+16, 5e-324.
func (n number) String() string {
	if n.int != nil {
		return n.int.String()
	}
	s := strconv.FormatFloat(n.float, 'e', -1, 64)
	_, digits, _ := strings.Cut(s, "e")
	if exp, err := strconv.Atoi(digits); err != nil || exp < -4 || exp >= 16 {
		return s
	}
	s = strconv.FormatFloat(n.float, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// approx returns the nearest float64; an integer beyond float64 is an error.
func (n number) approx() (float64, error) {
	if n.int == nil {
		return n.float, nil
	}
	f, _ := new(big.Float).SetInt(n.int).Float64()
	if math.IsInf(f, 0) {
		return 0, overflow()
	}
	return f, nil
}

// whole returns the number as an integer where it is one, 3 as well as 3.0.
func (n number) whole(what string) (*big.Int, error) {
	if n.int != nil {
		return n.int, nil
	}
	if n.float != math.Trunc(n.float) {
		return nil, fault.New(fault.ToolTerminal, "%s must be a whole number, not %s", what, n).
			WithHint("round it first, for example with the tool floor")
	}
	return n.truncated(), nil
}

// truncated returns the integer part.
func (n number) truncated() *big.Int {
	if n.int != nil {
		return n.int
	}
	i, _ := big.NewFloat(n.float).Int(nil) // finite: checked when it came in
	return i
}

// floored returns the largest integer that is not above the number.
func (n number) floored() *big.Int {
	if n.int != nil {
		return n.int
	}
	return float(math.Floor(n.float)).truncated()
}

func (n number) sign() int {
	switch {
	case n.int != nil:
		return n.int.Sign()
	case n.float > 0:
		return 1
	case n.float < 0:
		return -1
	}
	return 0
}
