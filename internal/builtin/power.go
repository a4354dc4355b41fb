package builtin

import (
	"math"
	"math/big"

	"github.com/stepjet/stepjet/fault"
)

// power is exact for an integer to the power of a non-negative integer, and a float otherwise, as in Python.
func power(a []number) (number, error) {
	base, exponent := a[0], a[1]
	if base.sign() == 0 && exponent.sign() < 0 {
		return number{}, fault.New(fault.ToolTerminal, "0 to the power of a negative number is a division by zero").
			WithHint("the base must not be 0, or the exponent not negative")
	}
	if bothInt(a) && exponent.sign() >= 0 {
		return intPower(base.int, exponent.int)
	}
	x, y, err := floats(base, exponent)
	if err != nil {
		return number{}, err
	}
	if x < 0 && y != math.Trunc(y) {
		return number{}, fault.New(fault.ToolTerminal, "a negative number to the power of a fraction is not a real number").
			WithHint("the base must not be negative, or the exponent must be whole")
	}
	return checked(float(floatPower(x, y)))
}

// intPower refuses what would come out too long before it is computed: |base| is at least 2^(bits-1).
func intPower(base, exponent *big.Int) (number, error) {
	if bits := base.BitLen(); bits > 1 {
		if !exponent.IsInt64() || exponent.Int64() > maxBits/int64(bits-1) {
			return number{}, tooManyDigits("the result")
		}
		return integer(new(big.Int).Exp(base, exponent, nil)), nil
	}
	switch { // 0, 1 and -1 have tiny powers, however large the exponent
	case exponent.Sign() == 0:
		return integer(big.NewInt(1)), nil
	case base.Sign() < 0 && exponent.Bit(0) == 0:
		return integer(big.NewInt(1)), nil
	}
	return integer(base), nil
}

// maxExact is the largest exponent that floatPower computes by itself.
const maxExact = 1 << 20

// floatPower returns the float nearest to the power for whole exponents: math.Pow is often a few units off in the last
// place, where Python's is not.
func floatPower(x, y float64) float64 {
	if x == 0 || y != math.Trunc(y) || math.Abs(y) > maxExact {
		return math.Pow(x, y)
	}
	const precision = 256 // of which 20 squarings lose about as many bits
	square := new(big.Float).SetPrec(precision).SetFloat64(x)
	product := new(big.Float).SetPrec(precision).SetInt64(1)
	for n := int(math.Abs(y)); n > 0; n >>= 1 {
		if n&1 == 1 {
			product.Mul(product, square)
		}
		square.Mul(square, square)
	}
	if y < 0 {
		product.Quo(big.NewFloat(1), product)
	}
	f, _ := product.Float64()
	return f
}
