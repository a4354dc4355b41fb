package jsontape

import (
	"math/big"
	"strings"
)

// Canonical writes a JSON number as digits without zeros at either end, and the power of ten that they are multiplied
// by, so that 100, 1e2 and 100.0 are the same; it is exact and costs no more than the literal's length.
func Canonical(lit string) string {
	sign := ""
	if lit[0] == '-' {
		sign, lit = "-", lit[1:]
	}
	digits, power := lit, new(big.Int)
	if i := strings.IndexAny(lit, "eE"); i >= 0 {
		digits = lit[:i]
		if len(lit)-i > 32 {
			return sign + lit // an exponent that nobody means: equal only if it is written the same
		}
		power.SetString(strings.TrimPrefix(lit[i+1:], "+"), 10)
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(digits, "0")
	if trimmed == "" {
		return "0"
	}
	power.Add(power, big.NewInt(int64(len(digits)-len(trimmed)-len(fraction))))
	return sign + trimmed + "e" + power.String()
}
