package builtin

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/stepjet/stepjet/fault"
)

// operation is one tool of the NESTFUL data set: what it says of itself, and how it computes.
type operation struct {
	name, description string
	args              []string // what each argument means, in order: arg_0, arg_1
	compute           func(a []number) (number, error)
}

// operations are the tools of the NESTFUL plans: names and meaning are theirs (testdata/nestful/tools.json).
var operations = []operation{
	{"add", "Adds two numbers: arg_0 + arg_1.", []string{"first summand", "second summand"}, add},
	{"subtract", "Subtracts two numbers: arg_0 - arg_1.", []string{"number to subtract from", "number to subtract"},
		subtract},
	{"multiply", "Multiplies two numbers: arg_0 * arg_1.", []string{"first factor", "second factor"}, multiply},
	{"divide", "Divides two numbers: arg_0 / arg_1 (true division, the result is a float).",
		[]string{"dividend", "divisor, not 0"}, divide},
	{"inverse", "Returns the reciprocal of a number: 1 / arg_0.", []string{"number, not 0"}, inverse},
	{"negate", "Returns the negation of a number: -arg_0.", []string{"number"}, negate},
	{"power", "Raises a number to a power: arg_0 ** arg_1.", []string{"base", "exponent"}, power},
	{"sqrt", "Returns the integer square root of a non-negative number: the floor of the root of arg_0. For the exact root use power with the exponent 0.5.", []string{"non-negative number"}, sqrt},
	{"floor", "Returns the largest integer less than or equal to arg_0.", []string{"number"}, floor},
	{"reminder", "Returns the remainder of arg_0 divided by arg_1; it takes the sign of arg_1.",
		[]string{"dividend", "divisor, not 0"}, reminder},
	{"gcd", "Returns the greatest common divisor of two numbers, which are truncated to integers first.",
		[]string{"first number", "second number"}, gcd},
	{"lcm", "Returns the least common multiple of two numbers: |arg_0 * arg_1| div gcd(arg_0, arg_1).",
		[]string{"first number", "second number"}, lcm},
	{"factorial", "Returns the factorial of a non-negative integer: arg_0!.", []string{"non-negative whole number"},
		factorial},
	{"choose", "Returns the number of ways to choose arg_1 items from arg_0 items without repetition and without order.",
		[]string{"number of items, whole and not negative", "number of items chosen, whole and not negative"}, choose},
	{"rectangle_area", "Returns the area of a rectangle: length * width.", []string{"length", "width"}, multiply},
	{"speed", "Returns the speed: distance / time.", []string{"distance", "time, not 0"}, divide},
	{"volume_cylinder", "Returns the volume of a cylinder: pi * r**2 * h.", []string{"radius r", "height h"},
		volumeCylinder},
}

func nestfulTools() []Tool {
	tools := make([]Tool, 0, len(operations))
	for _, op := range operations {
		tools = append(tools, define("nestful", op.name, op.description, op.schema(), numberResult, op.run))
	}
	return tools
}

const numberResult = `{"type":"object","properties":{"result":{"type":"number"}},"required":["result"],"additionalProperties":false}`

func (op operation) schema() string {
	var properties, names []string
	for i, meaning := range op.args {
		name := fmt.Sprintf("arg_%d", i)
		properties = append(properties, fmt.Sprintf(`%q:{"type":"number","description":%q}`, name, meaning))
		names = append(names, fmt.Sprintf("%q", name))
	}
	return fmt.Sprintf(`{"type":"object","properties":{%s},"required":[%s],"additionalProperties":false}`,
		strings.Join(properties, ","), strings.Join(names, ","))
}

func (op operation) run(c Call) ([]byte, error) {
	var given map[string]json.RawMessage
	if err := decode(c.Args, &given); err != nil {
		return nil, err
	}
	args := make([]number, len(op.args))
	for i := range args {
		name := fmt.Sprintf("arg_%d", i)
		lit, ok := given[name]
		if !ok {
			return nil, required(name)
		}
		var err error
		if args[i], err = parseNumber(lit); err != nil {
			return nil, prefixed(name, err)
		}
	}
	n, err := op.compute(args)
	if err == nil {
		n, err = checked(n)
	}
	if err != nil {
		return nil, prefixed(op.name, err)
	}
	return []byte(`{"result":` + n.String() + `}`), nil
}

func prefixed(what string, err error) error {
	e := *fault.As(err)
	e.Message = what + ": " + e.Message
	return &e
}

func divisionByZero() error {
	return fault.New(fault.ToolTerminal, "division by zero").WithHint("the divisor must not be 0")
}

// floats returns both operands as floats.
func floats(a, b number) (x, y float64, err error) {
	if x, err = a.approx(); err != nil {
		return 0, 0, err
	}
	y, err = b.approx()
	return x, y, err
}

// mixed computes with floats, once one operand is a float.
func mixed(a, b number, compute func(x, y float64) float64) (number, error) {
	x, y, err := floats(a, b)
	if err != nil {
		return number{}, err
	}
	return checked(float(compute(x, y)))
}

func bothInt(a []number) bool { return a[0].int != nil && a[1].int != nil }

// floorMod is the float remainder with the divisor's sign, as Python has it.
func floorMod(x, y float64) float64 {
	m := math.Mod(x, y)
	switch {
	case m == 0:
		return math.Copysign(0, y)
	case (m < 0) != (y < 0):
		return m + y
	}
	return m
}

// floorDiv is the float quotient rounded down, as Python has it: never off by one because of the division's rounding.
func floorDiv(x, y float64) float64 {
	q := (x - floorMod(x, y)) / y
	down := math.Floor(q)
	if q-down > 0.5 {
		down++
	}
	return down
}
