package worker

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"unicode"

	"github.com/stepjet/stepjet/fault"
)

// MethodOptions say how Methods hosts the methods of a value. The zero value hosts all of them, under names in snake case.
type MethodOptions struct {
	// Name returns the tool's name of a method; nil for SnakeCase. Methods of several values need names that differ,
	// such as "orders_" before each.
	Name func(method string) string
	// Only reports whether a method becomes a tool; nil for all.
	Only func(method string) bool
	// Options returns the options of a method's tool, as Handle takes them: at least a Description, since a model that
	// chooses among tools reads nothing else. nil for none.
	Options func(method string) []Option
}

// Methods hosts methods of a value as tools: all exported ones, promoted ones too, whose first parameter is a
// context.Context. Others are left alone. Each has one of these forms, with In and Out as in Handle:
//
//	func(ctx context.Context, in In) (Out, error)
//	func(ctx context.Context, in In) error
//	func(ctx context.Context) (Out, error)
//	func(ctx context.Context) error
//
// One of another form is an error of code invalid_tool, as is a value that has no such method, or has it on its pointer
// only. What is wrong is reported by Run, before anything is registered. A method without In takes an empty object; one
// without Out returns null.
//
// The value is shared by all calls, of which as many go on at once as the worker has slots. Who links Methods has larger
// programs: the linker keeps every exported method there is, since any may be looked up by name.
func Methods(w *Worker, value any, o MethodOptions) {
	v := reflect.ValueOf(value)
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		w.mistake(fault.New(fault.InvalidTool, "there is no value whose methods could be tools"))
		return
	}
	hosted := 0
	for i := range v.NumMethod() {
		name := v.Type().Method(i).Name
		fn := v.Method(i)
		if !takesContext(fn.Type()) || o.Only != nil && !o.Only(name) {
			continue
		}
		hosted++
		w.mistake(hostMethod(w, name, fn, o))
	}
	if hosted == 0 {
		w.mistake(noMethods(v.Type(), o))
	}
}

// hostMethod hosts one method.
func hostMethod(w *Worker, name string, fn reflect.Value, o MethodOptions) error {
	form := fn.Type()
	if !hasForm(form) {
		return fault.New(fault.InvalidTool, "method %s is a %v, which is no form of a tool", name, form).
			WithHint("write it as func(context.Context, In) (Out, error), without In or Out where there is none, or leave it out by MethodOptions.Only")
	}
	var opts []Option
	if o.Options != nil {
		opts = o.Options(name)
	}
	rename := o.Name
	if rename == nil {
		rename = SnakeCase
	}
	in, out := reflect.TypeFor[struct{}](), reflect.TypeFor[any]()
	if form.NumIn() == 2 {
		in = form.In(1)
	}
	if form.NumOut() == 2 {
		out = form.Out(0)
	}
	return w.handleTyped(rename(name), in, out, byReflection(fn), opts)
}

// byReflection makes a Handler of a method, as erase does of a typed function.
func byReflection(fn reflect.Value) Handler {
	form := fn.Type()
	return func(ctx context.Context, args json.RawMessage) (Output, error) {
		with := []reflect.Value{reflect.ValueOf(ctx)}
		if form.NumIn() == 2 {
			in := reflect.New(form.In(1))
			if err := unmarshal(args, in.Interface()); err != nil {
				return Output{}, err
			}
			with = append(with, in.Elem())
		}
		results := fn.Call(with)
		if err, failed := results[len(results)-1].Interface().(error); failed {
			return Output{}, err
		}
		var out any
		if len(results) == 2 {
			out = results[0].Interface()
		}
		return outputOf(out)
	}
}

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

func takesContext(form reflect.Type) bool { return form.NumIn() > 0 && form.In(0) == contextType }

func hasForm(form reflect.Type) bool {
	n := form.NumOut()
	return !form.IsVariadic() && form.NumIn() <= 2 && (n == 1 || n == 2) && form.Out(n-1) == errorType
}

// noMethods is the error of a value none of whose methods becomes a tool.
func noMethods(t reflect.Type, o MethodOptions) error {
	err := fault.New(fault.InvalidTool, "no method of %v becomes a tool", t)
	if t.Kind() != reflect.Pointer && reflect.PointerTo(t).NumMethod() > t.NumMethod() {
		return err.WithHint("hand over a pointer: *%v has more methods", t)
	}
	if o.Only != nil {
		return err.WithHint("MethodOptions.Only leaves all of them out, or none takes a context.Context first")
	}
	return err.WithHint("methods that become tools are exported, and take a context.Context first")
}

// SnakeCase writes a Go name as tools are mostly named: GetHTTPStatus becomes get_http_status.
func SnakeCase(name string) string {
	var b strings.Builder
	letters := []rune(name)
	for i, r := range letters {
		begins := unicode.IsUpper(r) && i > 0 && letters[i-1] != '_' &&
			(!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1]))
		if begins {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
