package reference

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxArguments is the most bytes that resolved arguments may have: 64 MiB.
const maxArguments = 64 << 20

var escapedCalcRE = regexp.MustCompile(`^\$\$+calc$`)

var indexRE = regexp.MustCompile(`^(?:0|[1-9][0-9]*)$`)

// Sight is what references see of the steps that they go to.
type Sight struct {
	// Result returns the JSON of a step's result, and false where it is missing.
	Result func(dep int) ([]byte, bool)
	// Status returns how a step ended: succeeded, failed, skipped, cancelled or not_taken.
	Status func(dep int) string
	// Err returns why a step did not succeed; nil where it did, or was not taken.
	Err func(dep int) *Err
}

// Arguments returns the arguments of a step with every reference replaced. What is no reference keeps the bytes of the
// plan, down to the space between them.
func (p *Plan) Arguments(step int, s Sight) ([]byte, *Err) {
	return p.arguments(step, nil, s)
}

// Nothing returns the references in a step's arguments that find nothing, as written and in their order; item is nil
// for a step without for_each.
func (p *Plan) Nothing(step int, item []byte, s Sight) []string {
	r := resolver{plan: p, sight: s, as: p.Steps[step].As, item: item}
	r.resolve(p.Steps[step].arguments)
	return r.lost
}

func (p *Plan) arguments(step int, item []byte, s Sight) ([]byte, *Err) {
	r := resolver{plan: p, sight: s, as: p.Steps[step].As, item: item}
	out := r.resolve(p.Steps[step].arguments)
	switch {
	case r.err != nil:
		return nil, r.err
	case len(out) == 0 || out[0] != '{':
		return nil, &Err{Code: codeInvalidArguments, Message: "the arguments came to no object"}
	}
	return out, nil
}

// resolver builds one step's arguments. After its first error it builds nothing more.
type resolver struct {
	plan  *Plan
	sight Sight
	as    string   // what the item is called; empty where there is none
	item  []byte   // nil where it is missing
	lost  []string // references in whose place null stands, as written
	size  int      // of all that was put in the place of references so far
	err   *Err

	deriving bool     // it is a value
	alone    []string // the references of the calculation in hand with no ?? around them
}

func (r *resolver) fail(code, message string) []byte {
	if r.err == nil {
		r.err = &Err{Code: code, Message: message}
	}
	return nil
}

// limited returns a replacement, unless all of them together are too large.
func (r *resolver) limited(b []byte) []byte {
	if r.size += len(b); r.size > maxArguments {
		return r.fail(codeTooLarge, "the resolved arguments are over 64 MiB")
	}
	return b
}

func (r *resolver) resolve(v *value) []byte {
	if r.err != nil {
		return nil
	}
	switch v.kind {
	case '"':
		return r.resolveText(v)
	case '[', '{':
		if v.calc != nil {
			return r.limited(r.calculated(v.calc))
		}
		if text := verbatim(v); text != nil {
			return text.raw
		}
		if target, is, _ := objectForm(v); is {
			return r.limited(r.replace(target))
		}
		return r.resolveMembers(v)
	}
	return v.raw
}

// resolveMembers copies an object or an array and replaces its keys and values on the way.
func (r *resolver) resolveMembers(v *value) []byte {
	var out bytes.Buffer
	at := 0
	for _, m := range v.members {
		if v.kind == '{' {
			key := v.raw[m.keyStart:m.keyEnd]
			text, _ := keyText(m.key)
			if r.deriving && escapedCalcRE.MatchString(m.key) {
				text = m.key[1:]
			}
			if text != m.key {
				key = encode(text)
			}
			out.Write(r.between(v.raw[at:m.keyStart]))
			out.Write(key)
			at = m.keyEnd
		}
		out.Write(r.between(v.raw[at:m.start]))
		out.Write(r.resolve(m.value))
		at = m.end
	}
	out.Write(r.between(v.raw[at:]))
	if out.Len() > maxArguments {
		return r.fail(codeTooLarge, "the resolved arguments are over 64 MiB")
	}
	return out.Bytes()
}

// between returns what stands between the members of an object or an array: in a value without white space.
func (r *resolver) between(text []byte) []byte {
	if !r.deriving {
		return text
	}
	return bytes.Join(bytes.Fields(text), nil)
}

func (r *resolver) resolveText(v *value) []byte {
	p, _ := parse(v.text) // it was parsed before, when the plan was read
	switch p.form {
	case whole:
		return r.limited(r.replace(p.refs[0]))
	case alternatives:
		return r.limited(r.choose(p))
	case template:
		return r.limited(r.fill(p))
	default: // plain text
	}
	if p.plain == v.text {
		return v.raw
	}
	return encode(p.plain)
}

// replace returns what a lone reference stands for.
func (r *resolver) replace(target ref) []byte {
	switch v, found := r.follow(target, false); found {
	case present:
		return v.raw
	case absent:
		return r.missing(target)
	default:
		return r.fail(codeUnresolvedRef, "a path goes into a string, number or boolean of step "+target.id)
	}
}

// choose returns the first alternative that is there and not null, the scalar where there is none, and else it is
// missing. A scalar is always there: a null at the end is no missing value.
func (r *resolver) choose(p phrase) []byte {
	for _, target := range p.refs {
		if v, found := r.follow(target, true); found == present && v.kind != 'n' {
			return v.raw
		}
	}
	if p.scalar != nil {
		return p.scalar
	}
	return r.missing(p.refs[0])
}

// fill writes a template: strings bare, all else as JSON. The language leaves open how the new string is spelled. Here
// a string of a result keeps its spelling, and all else has its shortest form.
func (r *resolver) fill(p phrase) []byte {
	var out bytes.Buffer
	out.WriteByte('"')
	for _, part := range p.pieces {
		out.Write(r.fillPiece(part))
		if out.Len() > maxArguments {
			return r.fail(codeTooLarge, "a template came to more than 64 MiB")
		}
	}
	out.WriteByte('"')
	return out.Bytes()
}

// fillPiece returns what stands between the quotes for one piece of a template.
func (r *resolver) fillPiece(part piece) []byte {
	quoted := encode(part.text)
	if part.ref != nil {
		if v, found := r.follow(*part.ref, false); found == present && v.kind == '"' {
			quoted = v.raw
		} else {
			quoted = encode(string(r.replace(*part.ref)))
		}
	}
	return quoted[1 : len(quoted)-1]
}

func (r *resolver) missing(target ref) []byte {
	if r.plan.MissingError {
		return r.fail(codeUnresolvedRef, "a reference to step "+target.id+" found nothing")
	}
	r.lost = append(r.lost, target.text)
	return []byte("null")
}

type finding int

const (
	present finding = iota
	absent
	intoScalar // the path goes on where a string, a number or a boolean is, or with [*] where an object is
)

// of returns what a reference to a step goes into.
func (s Sight) of(what string, step int) ([]byte, bool) {
	switch what {
	case ofStatus:
		return encode(s.Status(step)), true
	case ofError:
		err := s.Err(step)
		if err == nil {
			return []byte("null"), true
		}
		return []byte(`{"code":` + string(encode(err.Code)) + `,"message":` + string(encode(err.Message)) + `,"details":null}`), true
	}
	return s.Result(step)
}

// follow goes to the value that a reference names. among is whether it has alternatives.
func (r *resolver) follow(target ref, among bool) (*value, finding) {
	raw, ok := r.item, r.item != nil
	if r.as == "" || target.id != r.as {
		raw, ok = r.sight.of(target.of, r.plan.index(target.id))
	}
	if !ok {
		return nil, absent
	}
	v, err := readResult(raw)
	if err != nil {
		r.fail(codeToolTerminal, err.Error())
		return nil, absent
	}
	found, f := v.follow(target.path, among)
	if f != present {
		return nil, f
	}
	if !slices.ContainsFunc(target.path, func(s segment) bool { return s.form == '*' }) {
		return found[0], present
	}
	var list []string
	for _, v := range found {
		list = append(list, string(v.raw))
	}
	return &value{kind: '[', raw: []byte("[" + strings.Join(list, ",") + "]")}, present
}

// follow goes along a path: to one value, or behind a [*] to any number of them.
func (v *value) follow(path []segment, among bool) ([]*value, finding) {
	for i, s := range path {
		if s.form == '*' && v.kind == '[' {
			return v.every(path[i+1:], among)
		}
		switch {
		case v.kind == 'n':
			return nil, absent
		case v.kind == '{' && s.form != '*':
			v = v.key(s)
		case v.kind == '[':
			v = v.item(s)
		default:
			return nil, intoScalar
		}
		if v == nil {
			return nil, absent
		}
	}
	return []*value{v}, present
}

// every goes along a path from each item. What is missing is left out. So is, among alternatives, what goes into a
// scalar, since there it counts as missing.
func (v *value) every(path []segment, among bool) ([]*value, finding) {
	var all []*value
	for _, m := range v.members {
		found, f := m.value.follow(path, among)
		if f == intoScalar && !among {
			return nil, f
		}
		all = append(all, found...)
	}
	return all, present
}

// key is what a segment names in an object: [n] is for arrays only.
func (v *value) key(s segment) *value {
	if s.form == '[' {
		return nil
	}
	return v.get(s.text)
}

// item is what a segment names in an array: an unquoted number without a leading zero.
func (v *value) item(s segment) *value {
	if s.form == '"' || !indexRE.MatchString(s.text) {
		return nil
	}
	n, err := strconv.Atoi(s.text)
	if err != nil || n >= len(v.members) {
		return nil
	}
	return v.members[n].value
}
