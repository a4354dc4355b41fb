package builtin

import (
	"math"
	"math/big"

	"github.com/stepjet/stepjet/fault"
)

func add(a []number) (number, error) {
	if bothInt(a) {
		return integer(new(big.Int).Add(a[0].int, a[1].int)), nil
	}
	return mixed(a[0], a[1], func(x, y float64) float64 { return x + y })
}

func subtract(a []number) (number, error) {
	if bothInt(a) {
		return integer(new(big.Int).Sub(a[0].int, a[1].int)), nil
	}
	return mixed(a[0], a[1], func(x, y float64) float64 { return x - y })
}

func multiply(a []number) (number, error) {
	if bothInt(a) { // both are within their limit, so the product is cheap even where it is then refused
		return integer(new(big.Int).Mul(a[0].int, a[1].int)), nil
	}
	return mixed(a[0], a[1], func(x, y float64) float64 { return x * y })
}

// divide is true division: of integers, the float nearest to the exact quotient.
func divide(a []number) (number, error) {
	if a[1].sign() == 0 {
		return number{}, divisionByZero()
	}
	if bothInt(a) {
		f, _ := new(big.Rat).SetFrac(a[0].int, a[1].int).Float64()
		return checked(float(f))
	}
	return mixed(a[0], a[1], func(x, y float64) float64 { return x / y })
}

func inverse(a []number) (number, error) {
	return divide([]number{integer(big.NewInt(1)), a[0]})
}

func negate(a []number) (number, error) {
	if a[0].int != nil {
		return integer(new(big.Int).Neg(a[0].int)), nil
	}
	return float(-a[0].float), nil
}

// reminder takes the divisor's sign: 5 by -3 is -1.
func reminder(a []number) (number, error) {
	if a[1].sign() == 0 {
		return number{}, divisionByZero()
	}
	if !bothInt(a) {
		return mixed(a[0], a[1], floorMod)
	}
	m := new(big.Int).Rem(a[0].int, a[1].int)
	if m.Sign() != 0 && m.Sign() != a[1].int.Sign() {
		m.Add(m, a[1].int)
	}
	return integer(m), nil
}

func floor(a []number) (number, error) { return integer(a[0].floored()), nil }

// sqrt is the integer square root. The floor of the root of x is that of the floor of x, so it is exact for floats too.
func sqrt(a []number) (number, error) {
	if a[0].sign() < 0 {
		return number{}, fault.New(fault.ToolTerminal, "the square root of the negative number %s",
			clip([]byte(a[0].String()))).
			WithHint("arg_0 must not be negative")
	}
	return integer(new(big.Int).Sqrt(a[0].floored())), nil
}

func gcd(a []number) (number, error) {
	return integer(gcdOf(a)), nil
}

func gcdOf(a []number) *big.Int {
	x, y := new(big.Int).Abs(a[0].truncated()), new(big.Int).Abs(a[1].truncated())
	return new(big.Int).GCD(nil, nil, x, y)
}

// lcm is |a*b| div gcd(a, b), where only gcd truncates: of 4.5 and 3 it is 13.5 div 1.
func lcm(a []number) (number, error) {
	divisor := gcdOf(a)
	if divisor.Sign() == 0 {
		return number{}, fault.New(fault.ToolTerminal,
			"the least common multiple of two numbers that truncate to 0 is not defined").
			WithHint("at least one argument must be 1 or more, or -1 or less")
	}
	product, err := multiply(a)
	if err != nil {
		return number{}, err
	}
	if product.int != nil {
		p := new(big.Int).Abs(product.int)
		return integer(p.Quo(p, divisor)), nil
	}
	return mixed(float(math.Abs(product.float)), integer(divisor), floorDiv)
}

// volumeCylinder multiplies in the order pi * r**2 * h, the square of an integer being exact.
func volumeCylinder(a []number) (number, error) {
	square, err := multiply([]number{a[0], a[0]})
	if err != nil {
		return number{}, err
	}
	base, err := mixed(float(math.Pi), square, func(x, y float64) float64 { return x * y })
	if err != nil {
		return number{}, err
	}
	return multiply([]number{base, a[1]})
}

// factorial stops as soon as the product is over the limit, so its cost is bounded whatever the argument.
func factorial(a []number) (number, error) {
	n, err := notNegative(a[0], "arg_0")
	if err != nil {
		return number{}, err
	}
	product, limit := big.NewInt(1), boundedInt(n)
	factor := new(big.Int)
	for i := int64(2); i <= limit; i++ {
		product.Mul(product, factor.SetInt64(i))
		if product.BitLen() > maxBits {
			return number{}, tooManyDigits("the result")
		}
	}
	return integer(product), nil
}

// choose multiplies (n-r+1)/1, (n-r+2)/2, … Each prefix is itself a binomial coefficient, at least doubles from factor
// to factor (r being at most n/2) and never exceeds the result, so the loop ends after maxBits factors at most.
func choose(a []number) (number, error) {
	n, err := notNegative(a[0], "arg_0")
	if err != nil {
		return number{}, err
	}
	r, err := notNegative(a[1], "arg_1")
	if err != nil {
		return number{}, err
	}
	rest := new(big.Int).Sub(n, r)
	if rest.Sign() < 0 {
		return integer(new(big.Int)), nil
	}
	if rest.Cmp(r) < 0 {
		rest, r = r, rest
	}
	ways, factor, step := big.NewInt(1), new(big.Int).Set(rest), new(big.Int)
	for i, limit := int64(1), boundedInt(r); i <= limit; i++ {
		factor.Add(factor, step.SetInt64(1))
		ways.Mul(ways, factor)
		ways.Quo(ways, step.SetInt64(i))
		if ways.BitLen() > maxBits {
			return number{}, tooManyDigits("the result")
		}
	}
	return integer(ways), nil
}

func notNegative(n number, what string) (*big.Int, error) {
	i, err := n.whole(what)
	if err != nil {
		return nil, err
	}
	if i.Sign() < 0 {
		return nil, fault.New(fault.ToolTerminal, "%s must not be negative, and is %s", what, clip([]byte(i.String()))).
			WithHint("send a whole number, 0 or more")
	}
	return i, nil
}

// boundedInt returns i for a loop that ends earlier than at the largest int64 anyway.
func boundedInt(i *big.Int) int64 {
	if i.IsInt64() {
		return i.Int64()
	}
	return math.MaxInt64
}
