package expression

import (
	"github.com/cockroachdb/apd/v3"

	"github.com/stepjet/stepjet/fault"
)

// far is how many powers of ten lie at least between two numbers of 34 digits of which the smaller changes nothing of
// their sum. Without it a sum of 1e6000 and 1e-6000 would have 12,000 digits on its way.
const far = Digits + 6

// farthest is the most powers of ten between two numbers of which a remainder is taken.
const farthest = 100

// wide is for what is rounded afterwards: a number with all of its digits, the quotient within a remainder.
var wide = apd.Context{
	Precision: 2 * MaxNumber, MaxExponent: 2 * MaxExponent, MinExponent: -2 * MaxExponent, Traps: apd.DefaultTraps,
	Rounding: apd.RoundHalfUp,
}

// arithmetic is + - * / %.
func arithmetic(e *evaluation, x *binary, a, b value) (value, *fault.Error) {
	if err := e.want(number, x.left, a, numbers); err != nil {
		return value{}, err
	}
	if err := e.want(number, x.right, b, numbers); err != nil {
		return value{}, err
	}
	if a.kind == null || b.kind == null {
		return value{}, nil
	}
	l, err := e.operand(a)
	if err != nil {
		return value{}, err
	}
	r, err := e.operand(b)
	if err != nil {
		return value{}, err
	}
	d, err := e.calculate(x.op, l, r)
	return numberOf(d), err
}

// operand returns a number to calculate with: rounded to 34 digits.
func (e *evaluation) operand(v value) (*apd.Decimal, *fault.Error) {
	x, err := e.number(v)
	if err != nil || x.NumDigits() <= Digits {
		return x, err
	}
	d := new(apd.Decimal)
	_, bad := decimals.Round(d, x)
	return e.inRange(d, bad)
}

// calculate returns the result of an operator, rounded to 34 digits.
func (e *evaluation) calculate(op string, x, y *apd.Decimal) (*apd.Decimal, *fault.Error) {
	d := new(apd.Decimal)
	var bad error
	switch op {
	case "+":
		return e.add(x, y)
	case "-":
		return e.add(x, d.Neg(y))
	case "*":
		_, bad = decimals.Mul(d, x, y)
	default:
		if y.IsZero() {
			return nil, e.fail("a division by zero").WithHint("ask first: `%s == 0 ? null : %s`", "divisor", "… / divisor")
		}
		if op == "%" {
			return e.remainder(x, y)
		}
		_, bad = decimals.Quo(d, x, y)
	}
	return e.inRange(d, bad)
}

// inRange returns the result of a calculation, or says that it is too large or too small.
func (e *evaluation) inRange(d *apd.Decimal, bad error) (*apd.Decimal, *fault.Error) {
	switch {
	case bad != nil:
		return nil, e.fail("the result %s", outOfRange).WithHint("are the units those that are meant?")
	case d.IsZero():
		return new(apd.Decimal), nil // without a far exponent
	}
	return d, nil
}

func (e *evaluation) add(x, y *apd.Decimal) (*apd.Decimal, *fault.Error) {
	switch {
	case x.IsZero():
		return y, nil
	case y.IsZero() || magnitude(x)-magnitude(y) > far:
		return x, nil
	case magnitude(y)-magnitude(x) > far:
		return y, nil
	}
	d := new(apd.Decimal)
	_, bad := decimals.Add(d, x, y)
	return e.inRange(d, bad)
}

// remainder returns what is left of x behind the whole multiples of y. It has the sign of y, as that of the tool
// remainder.
func (e *evaluation) remainder(x, y *apd.Decimal) (*apd.Decimal, *fault.Error) {
	var small, large apd.Decimal
	if small.Abs(x).Cmp(large.Abs(y)) < 0 {
		if x.IsZero() || x.Negative == y.Negative {
			return x, nil
		}
		return e.add(x, y)
	}
	if magnitude(x)-magnitude(y) > farthest {
		return nil, e.fail("a number is divided by one that is too small beside it").
			WithHint("the larger may be at most 10^%d times the smaller", farthest)
	}
	d := new(apd.Decimal)
	_, bad := wide.Rem(d, x, y)
	if bad == nil && !d.IsZero() && d.Negative != y.Negative {
		_, bad = wide.Add(d, d, y)
	}
	return e.inRange(d, bad)
}

// sign is +x and -x.
type sign struct {
	at    int
	minus bool
	x     node
}

func (x *sign) eval(e *evaluation) (value, *fault.Error) {
	v, err := x.x.eval(e)
	if err != nil || v.kind == null {
		return value{}, err
	}
	if e.op, e.at = "+", x.at; x.minus {
		e.op = "-"
	}
	if err := e.want(number, x.x, v, numbers); err != nil {
		return value{}, err
	}
	d, err := e.number(v)
	if err != nil || !x.minus {
		return v, err
	}
	return numberOf(new(apd.Decimal).Neg(d)), nil
}

func absolute(e *evaluation, x *call, args []value) (value, *fault.Error) {
	if err := e.want(number, x.args[0], args[0], numbers); err != nil || args[0].kind == null {
		return value{}, err
	}
	d, err := e.number(args[0])
	if err != nil {
		return value{}, err
	}
	return numberOf(new(apd.Decimal).Abs(d)), nil
}

// round rounds to digits behind the point, or before it where they are negative. A half goes away from zero.
func round(e *evaluation, x *call, args []value) (value, *fault.Error) {
	for i, v := range args {
		if err := e.want(number, x.args[i], v, numbers); err != nil {
			return value{}, err
		}
	}
	if args[0].kind == null || args[len(args)-1].kind == null {
		return value{}, nil
	}
	d, err := e.number(args[0])
	if err != nil {
		return value{}, err
	}
	digits := int64(0)
	if len(args) > 1 {
		if digits, err = e.whole(args[1]); err != nil {
			return value{}, err
		}
	}
	rounded := new(apd.Decimal)
	var bad error
	switch {
	case d.IsZero() || magnitude(d)+1 < -digits:
	case -int64(d.Exponent) <= digits:
		_, bad = decimals.Round(rounded, d)
	default:
		if _, bad = wide.Quantize(rounded, d, int32(-digits)); bad == nil {
			_, bad = decimals.Round(rounded, rounded)
		}
	}
	rounded, err = e.inRange(rounded, bad)
	return numberOf(rounded), err
}

// whole returns a number of digits.
func (e *evaluation) whole(v value) (int64, *fault.Error) {
	d, err := e.number(v)
	if err != nil {
		return 0, err
	}
	n, bad := d.Int64()
	if bad != nil || n < -MaxExponent || n > MaxExponent {
		return 0, e.fail("the number of digits is not a whole number between -%d and %d", MaxExponent, MaxExponent).
			WithHint("write `round(x, 2)` for two digits behind the point")
	}
	return n, nil
}

// reduce is sum, product, min and max.
func reduce(e *evaluation, x *call, args []value) (value, *fault.Error) {
	var total *apd.Decimal
	for i, v := range args {
		items := args[i : i+1]
		if v.kind == array {
			var err *fault.Error
			if items, err = e.items(v); err != nil {
				return value{}, err
			}
		}
		for _, item := range items {
			if item.kind == null {
				continue
			}
			if err := e.wantNumbers(x.args[i], v, item); err != nil {
				return value{}, err
			}
			var err *fault.Error
			if total, err = e.step(x.name, total, item); err != nil {
				return value{}, err
			}
		}
	}
	switch {
	case total != nil:
		return numberOf(total), nil
	case x.name == "sum":
		return numberOf(new(apd.Decimal)), nil
	case x.name == "product":
		return numberOf(apd.New(1, 0)), nil
	}
	return value{}, nil
}

// wantNumbers refuses an item that is no number.
func (e *evaluation) wantNumbers(x node, v, item value) *fault.Error {
	if v.kind == array && item.kind != number {
		hint := "refer to the field of its items that is the number"
		if item.kind == object {
			hint += "; what a for_each step came to is in `data` of its items"
		}
		return e.fail("%s has an item that is %s, and it takes numbers", described(x), item.kind).WithHint("%s", hint)
	}
	return e.want(number, x, item, numbers)
}

// step takes one more number into a total, which is nil before the first.
func (e *evaluation) step(name string, total *apd.Decimal, v value) (*apd.Decimal, *fault.Error) {
	var d *apd.Decimal
	var err *fault.Error
	switch name {
	case "sum", "product":
		if d, err = e.operand(v); err != nil || total == nil {
			return d, err
		}
		if name == "sum" {
			return e.add(total, d)
		}
		return e.calculate("*", total, d)
	default:
		d, err = e.number(v)
		if err != nil || total == nil || d.Cmp(total) < 0 == (name == "min") {
			return d, err
		}
		return total, nil
	}
}
