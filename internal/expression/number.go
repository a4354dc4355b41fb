package expression

import "github.com/cockroachdb/apd/v3"

// decimals calculates with 34 digits; a half goes away from zero.
var decimals = apd.Context{
	Precision: Digits, MaxExponent: MaxExponent, MinExponent: -MaxExponent, Traps: apd.DefaultTraps,
	Rounding: apd.RoundHalfUp,
}

// mostPlain is the most digits that are written without an exponent.
const mostPlain = 100

// parseNumber reads a number of JSON, with all of its digits; why says why it can't be calculated with. It never
// expands an exponent.
func parseNumber(raw []byte) (d *apd.Decimal, why string) {
	if len(raw) > MaxNumber {
		return nil, "has more than 1000 characters"
	}
	if d := short(raw); d != nil {
		return d, ""
	}
	if isZero(raw) {
		return new(apd.Decimal), "" // whatever its exponent is
	}
	d, _, err := apd.NewFromString(string(raw))
	if err != nil || d.Form != apd.Finite {
		return nil, outOfRange
	}
	if n := magnitude(d); n > MaxExponent || n < -MaxExponent {
		return nil, outOfRange
	}
	return d, ""
}

// short reads a number of at most 18 digits without an exponent, as nearly all are; nil of any other.
func short(raw []byte) *apd.Decimal {
	if len(raw) > 20 {
		return nil
	}
	var n int64
	var exponent int32
	point, digits := false, 0
	for i, c := range raw {
		switch {
		case c >= '0' && c <= '9' && digits < 18:
			n = 10*n + int64(c-'0')
			digits++
			if point {
				exponent--
			}
		case c == '.' && !point:
			point = true
		case c == '-' && i == 0:
		default:
			return nil
		}
	}
	if n == 0 {
		exponent = 0
	}
	if raw[0] == '-' {
		n = -n
	}
	return apd.New(n, exponent)
}

// isZero reports whether no digit before the exponent is another than 0.
func isZero(raw []byte) bool {
	for _, c := range raw {
		if c == 'e' || c == 'E' {
			break
		}
		if c != '0' && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

const outOfRange = "lies beyond 10^6144, or is nearer to zero than 10^-6144"

// magnitude returns the power of ten of a number's first digit.
func magnitude(d *apd.Decimal) int64 { return d.NumDigits() + int64(d.Exponent) - 1 }

// appendNumber writes a number as short as it is exact: without zeros at its end, and without an exponent where it has
// at most 100 digits so.
func appendNumber(dst []byte, x *apd.Decimal) []byte {
	if x.IsZero() {
		return append(dst, '0')
	}
	var d apd.Decimal
	d.Reduce(x)
	digits := d.NumDigits() + int64(max(d.Exponent, 0)) // of a whole number
	if d.Exponent < 0 {
		digits = max(d.NumDigits(), 1-int64(d.Exponent))
	}
	if digits > mostPlain {
		return d.Append(dst, 'e')
	}
	return d.Append(dst, 'f')
}
