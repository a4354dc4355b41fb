package reference

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// decimal is a number as it is written: digits, and a power of ten.
type decimal struct {
	digits *big.Int
	power  int
}

// precision is how many digits are calculated with, writtenOut how many are written without an exponent.
const (
	precision  = 34
	writtenOut = 100
)

var ten = big.NewInt(10)

func pow10(n int) *big.Int { return new(big.Int).Exp(ten, big.NewInt(int64(n)), nil) }

// readDecimal reads a number of JSON.
func readDecimal(raw []byte) decimal {
	text, exponent, _ := strings.Cut(strings.ToLower(string(raw)), "e")
	power, _ := strconv.Atoi(exponent)
	whole, fraction, _ := strings.Cut(text, ".")
	digits, _ := new(big.Int).SetString(whole+fraction, 10)
	return decimal{digits, power - len(fraction)}
}

// rounded has at most 34 digits; a half goes away from zero.
func (d decimal) rounded() decimal {
	size := len(new(big.Int).Abs(d.digits).String())
	if size <= precision {
		return d
	}
	unit := pow10(size - precision)
	half := new(big.Int).Quo(unit, big.NewInt(2))
	if d.digits.Sign() < 0 {
		half.Neg(half)
	}
	sum := new(big.Int).Add(d.digits, half)
	return decimal{sum.Quo(sum, unit), d.power + size - precision}
}

// aligned returns the digits of two numbers for the lower power of both.
func aligned(a, b decimal) (x, y *big.Int, power int) {
	power = min(a.power, b.power)
	x = new(big.Int).Mul(a.digits, pow10(a.power-power))
	return x, new(big.Int).Mul(b.digits, pow10(b.power-power)), power
}

// calculate is a + - or * of two numbers.
func (d decimal) calculate(op string, b decimal) decimal {
	d, b = d.rounded(), b.rounded()
	if op == "*" {
		return decimal{new(big.Int).Mul(d.digits, b.digits), d.power + b.power}.rounded()
	}
	x, y, power := aligned(d, b)
	if op == "-" {
		y.Neg(y)
	}
	return decimal{x.Add(x, y), power}.rounded()
}

func (d decimal) compare(b decimal) int {
	x, y, _ := aligned(d, b)
	return x.Cmp(y)
}

// json writes a number as short as it is exact.
func (d decimal) json() []byte {
	if d.digits.Sign() == 0 {
		return []byte("0")
	}
	sign, digits := "", d.digits.String()
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	short := strings.TrimRight(digits, "0")
	power := d.power + len(digits) - len(short)
	switch size := len(short); {
	case power >= 0 && size+power <= writtenOut:
		return []byte(sign + short + strings.Repeat("0", power))
	case power < 0 && max(size, 1-power) <= writtenOut:
		if size <= -power {
			short = strings.Repeat("0", 1-power-size) + short
		}
		point := len(short) + power
		return []byte(sign + short[:point] + "." + short[point:])
	}
	exponent := power + len(short) - 1
	text := sign + short[:1]
	if len(short) > 1 {
		text += "." + short[1:]
	}
	if exponent >= 0 {
		return []byte(text + "e+" + strconv.Itoa(exponent))
	}
	return []byte(text + "e" + strconv.Itoa(exponent))
}

// farthest is the power of ten that numbers but 0 may not go beyond, up or down.
const farthest = 6144

// beyond is whether a number lies too far from 1.
func (d decimal) beyond() bool {
	power := d.power + len(new(big.Int).Abs(d.digits).String()) - 1
	return d.digits.Sign() != 0 && (power > farthest || power < -farthest)
}

// numeric returns a number that was calculated.
func (r *resolver) numeric(d decimal) *value {
	if d.beyond() {
		r.fail(codeCondition, "it is too large or too small")
		return nothing
	}
	return numeric(d)
}

func numeric(d decimal) *value { return &value{kind: '0', raw: d.json()} }

// arithmetic is + - * of two numbers; nothing where one is nothing.
func (r *resolver) arithmetic(op string, a, b *value) *value {
	for _, v := range []*value{a, b} {
		if v.kind != '0' && v.kind != 'n' {
			r.fail(codeCondition, "it is no number")
			return nothing
		}
	}
	if a.kind == 'n' || b.kind == 'n' {
		return nothing
	}
	return r.numeric(readDecimal(a.raw).calculate(op, readDecimal(b.raw)))
}

// reduce is sum, product, min, max over numbers and lists of them.
func (r *resolver) reduce(name string, args []*value) *value {
	var all []decimal
	for _, v := range args {
		items := []*value{v}
		if v.kind == '[' {
			items = nil
			for _, m := range v.members {
				items = append(items, m.value)
			}
		}
		for _, item := range items {
			switch item.kind {
			case 'n':
			case '0':
				all = append(all, readDecimal(item.raw))
			default:
				r.fail(codeCondition, "it is no number")
				return nothing
			}
		}
	}
	switch {
	case name == "min" && len(all) > 0:
		return numeric(slices.MinFunc(all, decimal.compare))
	case name == "max" && len(all) > 0:
		return numeric(slices.MaxFunc(all, decimal.compare))
	case name == "min" || name == "max":
		return nothing
	}
	op, total := "+", decimal{big.NewInt(0), 0}
	if name == "product" {
		op, total = "*", decimal{big.NewInt(1), 0}
	}
	for _, d := range all {
		if total = total.calculate(op, d); total.beyond() {
			break
		}
	}
	return r.numeric(total)
}
