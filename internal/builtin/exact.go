package builtin

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
)

// exact is a number as people reckon with: 0.1 + 0.2 is 0.3. Sums, differences, products and whole powers are exact;
// what no decimal can hold, such as 1/3, is rounded to roundedDigits when it is written.
type exact struct{ *big.Rat }

// roundedDigits is the number of significant digits of a result that no decimal can hold exactly.
const roundedDigits = 34

// parseExact reads a JSON number literal. Numbers of over 20,000 digits before or behind the point are refused.
func parseExact(lit []byte) (exact, error) {
	if len(lit) == 0 || lit[0] != '-' && (lit[0] < '0' || lit[0] > '9') || !json.Valid(lit) ||
		bytes.ContainsAny(lit, " \t\r\n") {
		return exact{}, fault.New(fault.InvalidArguments, "%s is not a number", clip(lit)).
			WithHint("send a JSON number, without quotes")
	}
	_, power, _ := strings.Cut(strings.ToLower(string(lit)), "e")
	n, err := strconv.Atoi(strings.TrimPrefix(power, "+"))
	if power != "" && (err != nil || n > maxDigits || n < -maxDigits) || len(lit) > maxDigits+1 {
		return exact{}, tooLong("an argument")
	}
	r, ok := new(big.Rat).SetString(string(lit))
	if !ok {
		return exact{}, fault.New(fault.InvalidArguments, "%s is not a number", clip(lit))
	}
	return exact{r}.checked("an argument")
}

// checked refuses what is too long.
func (x exact) checked(what string) (exact, error) {
	if x.Num().BitLen() > maxBits || x.Denom().BitLen() > maxBits {
		return exact{}, tooLong(what)
	}
	return x, nil
}

func tooLong(what string) error {
	return fault.New(fault.ToolTerminal, "%s has more than %d digits", what, maxDigits).
		WithHint("use smaller numbers, or round them first")
}

// String returns the number's JSON form: all of its digits where it has an end, else roundedDigits of them.
func (x exact) String() string {
	if x.IsInt() {
		return x.Num().String()
	}
	if n, ends := decimals(x.Denom()); ends {
		return x.FloatString(n)
	}
	return x.rounded()
}

// decimals returns the number of digits behind the point of a fraction with this denominator, and whether it ends at
// all.
func decimals(denominator *big.Int) (n int, ends bool) {
	twos := int(denominator.TrailingZeroBits())
	rest := new(big.Int).Rsh(denominator, uint(twos))
	fives, five, quotient, remainder := 0, big.NewInt(5), new(big.Int), new(big.Int)
	for rest.Cmp(five) >= 0 && fives <= maxDigits {
		if quotient.QuoRem(rest, five, remainder); remainder.Sign() != 0 {
			return 0, false
		}
		rest, quotient = quotient, rest
		fives++
	}
	return max(twos, fives), rest.IsInt64() && rest.Int64() == 1
}

// rounded writes a number that has no end, with roundedDigits of significance.
func (x exact) rounded() string {
	const precision = 256 // more than roundedDigits take
	r, ok := new(big.Rat).SetString(new(big.Float).SetPrec(precision).SetRat(x.Rat).Text('e', roundedDigits-1))
	if !ok { // not for what Text writes
		return x.FloatString(roundedDigits)
	}
	return exact{r}.String()
}

// whole returns the number as an integer.
func (x exact) whole(what string) (*big.Int, error) {
	if !x.IsInt() {
		return nil, fault.New(fault.ToolTerminal, "%s must be a whole number, not %s", what, clip([]byte(x.String()))).
			WithHint("round it first, with round, floor or ceil")
	}
	return x.Num(), nil
}

// floored returns the largest integer that is not above the number.
func (x exact) floored() *big.Int { return new(big.Int).Div(x.Num(), x.Denom()) } // the denominator is above 0

func exactInt(i *big.Int) exact { return exact{new(big.Rat).SetInt(i)} }
