package builtin

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
)

// calculation is one arithmetic tool: what it says of itself, and how it computes.
type calculation struct {
	name, description string
	args              []argument
	whole             bool // the result is a whole number
	compute           func(a []exact) (exact, error)
}

// argument is one named argument of a calculation.
type argument struct {
	name, meaning string
	list          bool   // an array of numbers; it is the only argument then
	otherwise     string // what it is where it is left out; empty: it is required
}

func arg(name, meaning string) argument { return argument{name: name, meaning: meaning} }

var numbersArgument = []argument{{name: "numbers", meaning: "one number or more", list: true}}

// calculations are exact: decimals are no binary fractions here.
var calculations = []calculation{
	{"add", "Adds two numbers: a + b.", []argument{arg("a", "first summand"), arg("b", "second summand")}, false,
		exactAdd},
	{"subtract", "Subtracts two numbers: a - b.",
		[]argument{arg("a", "number to subtract from"), arg("b", "number to subtract")}, false, exactSubtract},
	{"multiply", "Multiplies two numbers: a * b.", []argument{arg("a", "first factor"), arg("b", "second factor")}, false,
		exactMultiply},
	{"divide", "Divides two numbers: a / b, exactly where the result has an end, else with 34 digits.",
		[]argument{arg("a", "dividend"), arg("b", "divisor, not 0")}, false, exactDivide},
	{"remainder", "Returns what is left of a divided by b: 17 and 5 give 2. It takes the sign of b.",
		[]argument{arg("a", "dividend"), arg("b", "divisor, not 0")}, false, exactRemainder},
	{"power", "Raises a number to a power: base ** exponent.",
		[]argument{arg("base", "number"), arg("exponent", "number")}, false, exactPower},
	{"sqrt", "Returns the square root: of 2.25 it is 1.5. For the whole part of it use isqrt.",
		[]argument{arg("x", "number, not negative")}, false, exactRoot},
	{"isqrt", "Returns the integer square root, rounded down: of 24 it is 4.",
		[]argument{arg("x", "number, not negative")}, true, wholeRoot},
	{"round", "Rounds a number to so many digits behind the point; a half goes away from 0.",
		[]argument{arg("x", "number"), {name: "digits",
			meaning: "digits behind the point; negative for tens, hundreds, …; 0 by default", otherwise: "0"}}, false,
		exactRound},
	{"floor", "Rounds a number down to a whole one.", []argument{arg("x", "number")}, true, exactFloor},
	{"ceil", "Rounds a number up to a whole one.", []argument{arg("x", "number")}, true, exactCeil},
	{"abs", "Returns a number without its sign.", []argument{arg("x", "number")}, false, func(a []exact) (exact, error) {
		return exact{new(big.Rat).Abs(a[0].Rat)}, nil
	}},
	{"negate", "Returns -x.", []argument{arg("x", "number")}, false, func(a []exact) (exact, error) {
		return exact{new(big.Rat).Neg(a[0].Rat)}, nil
	}},
	{"min", "Returns the least of some numbers.", numbersArgument, false, func(a []exact) (exact, error) {
		return slices.MinFunc(a, compareExact), nil
	}},
	{"max", "Returns the greatest of some numbers.", numbersArgument, false, func(a []exact) (exact, error) {
		return slices.MaxFunc(a, compareExact), nil
	}},
	{"sum", "Adds up some numbers.", numbersArgument, false, exactSum},
	{"average", "Returns the mean of some numbers.", numbersArgument, false, exactAverage},
	{"gcd", "Returns the greatest common divisor of two whole numbers.",
		[]argument{arg("a", "whole number"), arg("b", "whole number")}, true, exactGCD},
	{"lcm", "Returns the least common multiple of two whole numbers.",
		[]argument{arg("a", "whole number"), arg("b", "whole number")}, true, exactLCM},
	{"factorial", "Returns n! of a whole number.", []argument{arg("n", "whole number, not negative")}, true,
		func(a []exact) (exact, error) { return wholeOf(factorial, a, "n") }},
	{"choose", "Returns the number of ways to choose k of n things, without order and repetition.",
		[]argument{arg("n", "whole number, not negative"), arg("k", "whole number, not negative")}, true,
		func(a []exact) (exact, error) { return wholeOf(choose, a, "n", "k") }},
}

func arithmeticTools() []Tool {
	tools := make([]Tool, 0, len(calculations))
	for _, c := range calculations {
		output := numberResult
		if c.whole {
			output = strings.Replace(numberResult, `"number"`, `"integer"`, 1)
		}
		tools = append(tools, define("arithmetic", c.name, c.description, c.schema(), output, c.run))
	}
	return tools
}

func (c calculation) schema() string {
	var properties, names []string
	for _, a := range c.args {
		kind := `"type":"number"`
		if a.list {
			kind = `"type":"array","items":{"type":"number"},"minItems":1`
		} else if a.otherwise != "" {
			kind = `"type":"integer"`
		}
		properties = append(properties, fmt.Sprintf(`%q:{%s,"description":%q}`, a.name, kind, a.meaning))
		if a.otherwise == "" {
			names = append(names, strconv.Quote(a.name))
		}
	}
	return object(strings.Join(properties, ","), strings.Join(names, ","))
}

func (c calculation) run(call Call) ([]byte, error) {
	var given map[string]json.RawMessage
	if err := decode(call.Args, &given); err != nil {
		return nil, err
	}
	var args []exact
	for _, a := range c.args {
		lits, err := a.literals(given)
		if err != nil {
			return nil, err
		}
		for _, lit := range lits {
			x, err := parseExact(lit)
			if err != nil {
				return nil, prefixed(a.name, err)
			}
			args = append(args, x)
		}
	}
	x, err := c.compute(args)
	if err == nil {
		x, err = x.checked("the result")
	}
	if err != nil {
		return nil, prefixed(c.name, err)
	}
	return []byte(`{"result":` + x.String() + `}`), nil
}

// literals returns what was written for an argument: one number, or all of a list.
func (a argument) literals(given map[string]json.RawMessage) ([]json.RawMessage, error) {
	lit, ok := given[a.name]
	switch {
	case !ok && a.otherwise != "":
		return []json.RawMessage{json.RawMessage(a.otherwise)}, nil
	case !ok:
		return nil, required(a.name)
	case !a.list:
		return []json.RawMessage{lit}, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(lit, &list); err != nil || len(list) == 0 {
		return nil, fault.New(fault.InvalidArguments, "the argument %q is no list of numbers", a.name).
			WithHint("send one number or more: [1, 2.5]")
	}
	return list, nil
}

func compareExact(x, y exact) int { return x.Cmp(y.Rat) }

func exactAdd(a []exact) (exact, error) { return exact{new(big.Rat).Add(a[0].Rat, a[1].Rat)}, nil }

func exactSubtract(a []exact) (exact, error) { return exact{new(big.Rat).Sub(a[0].Rat, a[1].Rat)}, nil }

func exactMultiply(a []exact) (exact, error) { return exact{new(big.Rat).Mul(a[0].Rat, a[1].Rat)}, nil }

func exactDivide(a []exact) (exact, error) {
	if a[1].Sign() == 0 {
		return exact{}, divisionByZero()
	}
	return exact{new(big.Rat).Quo(a[0].Rat, a[1].Rat)}, nil
}

func exactRemainder(a []exact) (exact, error) {
	if a[1].Sign() == 0 {
		return exact{}, divisionByZero()
	}
	whole := exact{new(big.Rat).Quo(a[0].Rat, a[1].Rat)}.floored()
	return exact{new(big.Rat).Sub(a[0].Rat, new(big.Rat).Mul(a[1].Rat, new(big.Rat).SetInt(whole)))}, nil
}

// exactSum stops at what is too long: each number is short, but a hundred thousand denominators multiply.
func exactSum(a []exact) (sum exact, err error) {
	sum = exact{new(big.Rat)}
	for _, x := range a {
		if sum, err = (exact{sum.Add(sum.Rat, x.Rat)}).checked("the sum"); err != nil {
			return exact{}, err
		}
	}
	return sum, nil
}

func exactAverage(a []exact) (exact, error) {
	sum, err := exactSum(a)
	if err != nil {
		return exact{}, err
	}
	return exact{sum.Quo(sum.Rat, new(big.Rat).SetInt64(int64(len(a))))}, nil
}

func exactFloor(a []exact) (exact, error) { return exactInt(a[0].floored()), nil }

func exactCeil(a []exact) (exact, error) {
	i := exact{new(big.Rat).Neg(a[0].Rat)}.floored()
	return exactInt(i.Neg(i)), nil
}

// exactRound rounds |x| + 1/2 down, in units of the last digit.
func exactRound(a []exact) (exact, error) {
	n, err := a[1].whole("digits")
	if err != nil {
		return exact{}, err
	}
	if !n.IsInt64() || n.Int64() > maxDigits || n.Int64() < -maxDigits {
		return exact{}, tooLong("the result")
	}
	unit := exact{new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), new(big.Int).Abs(n), nil))}
	if n.Sign() > 0 {
		unit.Inv(unit.Rat)
	}
	units := new(big.Rat).Quo(new(big.Rat).Abs(a[0].Rat), unit.Rat)
	down := exact{units.Add(units, big.NewRat(1, 2))}.floored()
	out := new(big.Rat).Mul(new(big.Rat).SetInt(down), unit.Rat)
	if a[0].Sign() < 0 {
		out.Neg(out)
	}
	return exact{out}, nil
}

func exactGCD(a []exact) (exact, error) {
	x, y, err := twoWhole(a)
	if err != nil {
		return exact{}, err
	}
	return exactInt(new(big.Int).GCD(nil, nil, x, y)), nil
}

func exactLCM(a []exact) (exact, error) {
	x, y, err := twoWhole(a)
	if err != nil || x.Sign() == 0 || y.Sign() == 0 {
		return exactInt(new(big.Int)), err
	}
	return exactInt(x.Mul(x, y.Quo(y, new(big.Int).GCD(nil, nil, x, y)))), nil
}

func twoWhole(a []exact) (x, y *big.Int, err error) {
	if x, err = a[0].whole("a"); err != nil {
		return nil, nil, err
	}
	if y, err = a[1].whole("b"); err != nil {
		return nil, nil, err
	}
	return new(big.Int).Abs(x), new(big.Int).Abs(y), nil
}

// wholeOf computes with whole numbers. names are those of the arguments.
func wholeOf(compute func([]number) (number, error), a []exact, names ...string) (exact, error) {
	args := make([]number, len(a))
	for i := range a {
		n, err := a[i].whole(names[i])
		if err != nil {
			return exact{}, err
		}
		args[i] = integer(n)
	}
	n, err := compute(args)
	if err != nil {
		e := *fault.As(err) // the data set calls them arg_0 and arg_1
		for i, name := range names {
			e.Message = strings.ReplaceAll(e.Message, fmt.Sprintf("arg_%d", i), name)
		}
		return exact{}, &e
	}
	return exactInt(n.int), nil
}

func negativeRoot(x exact) error {
	return fault.New(fault.ToolTerminal, "the square root of the negative number %s", clip([]byte(x.String()))).
		WithHint("x must not be negative")
}

func wholeRoot(a []exact) (exact, error) {
	if a[0].Sign() < 0 {
		return exact{}, negativeRoot(a[0])
	}
	return exactInt(new(big.Int).Sqrt(a[0].floored())), nil
}

// exactRoot is exact for the squares of decimals; of others it has roundedDigits of significance.
func exactRoot(a []exact) (exact, error) {
	x := a[0]
	if x.Sign() < 0 {
		return exact{}, negativeRoot(x)
	}
	num, denom := new(big.Int).Sqrt(x.Num()), new(big.Int).Sqrt(x.Denom())
	root := exact{new(big.Rat).SetFrac(num, denom)}
	if new(big.Rat).Mul(root.Rat, root.Rat).Cmp(x.Rat) == 0 {
		return root, nil
	}
	const precision = 256 // more than roundedDigits take
	f := new(big.Float).SetPrec(precision).SetRat(x.Rat)
	r, ok := new(big.Rat).SetString(f.Sqrt(f).Text('e', roundedDigits-1))
	if !ok {
		return exact{}, tooLong("the result")
	}
	return exact{r}, nil
}

// exactPower is exact for whole exponents; a half is a square root, and other exponents are those of float64.
func exactPower(a []exact) (exact, error) {
	base, exponent := a[0], a[1]
	switch {
	case base.Sign() == 0 && exponent.Sign() < 0:
		return exact{}, fault.New(fault.ToolTerminal, "0 to the power of a negative number is a division by zero").
			WithHint("the base must not be 0, or the exponent not negative")
	case exponent.IsInt():
		return wholePower(base, exponent.Num())
	case base.Sign() < 0:
		return exact{}, fault.New(fault.ToolTerminal, "a negative number to the power of a fraction is not a real number").
			WithHint("the base must not be negative, or the exponent must be whole")
	case exponent.Cmp(big.NewRat(1, 2)) == 0:
		return exactRoot(a[:1])
	}
	x, _ := base.Float64()
	y, _ := exponent.Float64()
	z := math.Pow(x, y)
	r := new(big.Rat)
	if math.IsInf(z, 0) || math.IsNaN(z) {
		return exact{}, overflow()
	}
	r.SetString(strconv.FormatFloat(z, 'e', -1, 64)) // the shortest that is read back as the same
	return exact{r}, nil
}

func wholePower(base exact, exponent *big.Int) (exact, error) {
	times := new(big.Int).Abs(exponent)
	num, err := intPower(base.Num(), times)
	if err != nil {
		return exact{}, err
	}
	denom, err := intPower(base.Denom(), times)
	if err != nil {
		return exact{}, err
	}
	r := new(big.Rat).SetFrac(num.int, denom.int)
	if exponent.Sign() < 0 {
		r.Inv(r)
	}
	return exact{r}, nil
}
