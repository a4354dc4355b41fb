package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// each is a plan of a list and a step that runs once for each of its items.
func each(forEach, arguments string) string {
	return steps(`{"id":"list","tool":"echo"},{"id":"fetch","tool":"echo","for_each":` + forEach + `,"arguments":` + arguments + `}`)
}

func TestForEach(t *testing.T) {
	t.Parallel()
	p, r := plan.Parse([]byte(steps(`{"id":"list","tool":"echo"},{"id":"other","tool":"echo"},
		{"id":"fetch","tool":"echo","for_each":{"in":"$ref:list.items","as":"page"},"arguments":{"id":"$ref:page.id","x":"$ref:other"}},
		{"id":"once","tool":"echo","for_each":null,"arguments":{"x":"$ref:fetch[0].data.title"}},
		{"id":"plain","tool":"echo","for_each":{"in":[1,"$ref:list"]},"arguments":{"x":1}}`)), nil)
	require.Empty(t, r.Problems)
	require.Empty(t, r.Warnings)
	require.Equal(t, []int{0, 1}, p.Steps[2].Deps, "those of the list and those of the arguments; the item is none")
	require.Equal(t, "page", p.Steps[2].ForEach.As)
	require.True(t, p.Steps[2].HasRefs)
	require.Nil(t, p.Steps[3].ForEach)
	require.Equal(t, []int{2}, p.Steps[3].Deps)
	require.Equal(t, []int{0}, p.Steps[4].Deps)
	require.Equal(t, "item", p.Steps[4].ForEach.As)
	require.False(t, p.Steps[4].HasRefs)
	require.Equal(t, 3, p.Depth)
}

func TestItemRefsAreRefs(t *testing.T) {
	t.Parallel()
	p := parsed(t, each(`{"in":[1]}`, `{"x":"$ref:item"}`))
	require.True(t, p.Steps[1].HasRefs)
	require.Empty(t, p.Steps[1].Deps)
}

// What is wrong with a for_each: the one problem, where it is, and what its hint says.
func TestForEachProblems(t *testing.T) {
	t.Parallel()
	const x = `{"x":"$ref:item"}`
	in := func(in string) string { return each(`{"in":`+in+`}`, x) }
	then := func(arguments string) string {
		return steps(`{"id":"list","tool":"echo"},{"id":"fetch","tool":"echo","for_each":{"in":"$ref:list"}},{"id":"s","tool":"echo","arguments":` + arguments + `}`)
	}
	for name, c := range map[string]struct{ plan, at, hint string }{
		"a string":               {each(`"$ref:list"`, x), "invalid_value /steps/1/for_each", `"for_each": {"in": "$ref:list", "as": "item"}`},
		"an array":               {each(`[1]`, x), "invalid_value /steps/1/for_each", `"for_each": {"in": [1]`},
		"true":                   {each(`true`, x), "invalid_value /steps/1/for_each", `"in"`},
		"empty":                  {each(`{}`, x), "invalid_value /steps/1/for_each", `"in"`},
		"no list":                {each(`{"in":null,"as":"item"}`, x), "invalid_value /steps/1/for_each", `"in": "$ref:`},
		"list is text":           {in(`"see $ref:list now"`), "invalid_ref /steps/1/for_each/in", `write "in"`},
		"list is a template":     {in(`"${ref:list}"`), "invalid_ref /steps/1/for_each/in", `write "in"`},
		"list is an escape":      {in(`"$$ref:list"`), "invalid_ref /steps/1/for_each/in", `write "in"`},
		"list without prefix":    {in(`"list.items"`), "invalid_value /steps/1/for_each/in", `write "$ref:list.items"`},
		"list in a string":       {in(`"[1,2]"`), "invalid_value /steps/1/for_each/in", "the array itself"},
		"list is any text":       {in(`"everything"`), "invalid_value /steps/1/for_each/in", `write "in"`},
		"list is a number":       {in(`7`), "invalid_value /steps/1/for_each/in", `write "in"`},
		"list is an object":      {in(`{"x":"$ref:list"}`), "invalid_value /steps/1/for_each/in", `write "in"`},
		"list is broken":         {in(`"$ref:list[-1]"`), "invalid_ref /steps/1/for_each/in", "negative"},
		"object form is broken":  {in(`{"$ref":"list","x":1}`), "invalid_ref /steps/1/for_each/in", "nothing else in the object"},
		"list of nobody":         {in(`"$ref:lst"`), "unknown_ref /steps/1/for_each/in", `"$ref:list"`},
		"nobody in an array":     {in(`[1,{"x":["$ref:lst"]}]`), "unknown_ref /steps/1/for_each/in/1/x/0", `"$ref:list"`},
		"list is a scalar":       {in(`"$ref:list || 5"`), "invalid_ref /steps/1/for_each/in", "leave it out"},
		"item in the list":       {in(`"$ref:item"`), "unknown_ref /steps/1/for_each/in", "known only in the arguments"},
		"the step itself":        {in(`"$ref:fetch"`), "cycle /steps/1/for_each/in", "wait for itself"},
		"name is a step":         {each(`{"in":[1],"as":"list"}`, `{}`), "invalid_value /steps/1/for_each/as", `"as": "each"`},
		"name is the step":       {each(`{"in":[1],"as":"fetch"}`, `{}`), "invalid_value /steps/1/for_each/as", `"as": "each"`},
		"default name is a step": {steps(`{"id":"item","tool":"echo"},{"id":"s","tool":"echo","for_each":{"in":[1]},"arguments":` + x + `}`), "invalid_value /steps/1/for_each", `"as": "each"`},
		"name with a blank":      {each(`{"in":[1],"as":"a page"}`, `{}`), "invalid_value /steps/1/for_each/as", `as in "a_page"`},
		"name is a number":       {each(`{"in":[1],"as":5}`, x), "invalid_value /steps/1/for_each/as", `"as": "item"`},
		"name in capitals":       {each(`{"in":[1],"As":"item"}`, x), "unknown_field /steps/1/for_each/As", `"as"`},
		"list in capitals":       {each(`{"IN":[1]}`, x), "unknown_field /steps/1/for_each/IN", `"in"`},
		"forEach":                {steps(`{"id":"s","tool":"echo","forEach":{"in":[1]},"arguments":` + x + `}`), "unknown_field /steps/0/forEach", `"for_each"`},
		"foreach":                {steps(`{"id":"s","tool":"echo","foreach":{"in":[1]},"arguments":` + x + `}`), "unknown_field /steps/0/foreach", `"for_each"`},
		"of the plan":            {`{"steps":[{"id":"s","tool":"echo"}],"for_each":{"in":[1]}}`, "unknown_field /for_each", "into the step"},
		"item elsewhere":         {then(`{"x":"$ref:item.id"}`), "unknown_ref /steps/2/arguments/x", `known only in the arguments of the for_each step "fetch"`},
		"a key":                  {then(`{"x":["$ref:fetch.title"]}`), "invalid_ref /steps/2/arguments/x/0", `write "$ref:fetch[0].data.title"`},
		"a quoted key":           {then(`{"x":"see ${ref:fetch[\"a b\"]}"}`), "invalid_ref /steps/2/arguments/x", `write ${ref:fetch[0].data["a b"]}`},
		"an entry's key":         {then(`{"x":"$ref:fetch[3].title.de || 1"}`), "invalid_ref /steps/2/arguments/x", `write "$ref:fetch[3].data.title.de"`},
		"an entry's item":        {then(`{"x":"$ref:fetch[3][0]"}`), "invalid_ref /steps/2/arguments/x", `write "$ref:fetch[3].data[0]"`},
		"results":                {then(`{"x":"$ref:fetch.results"}`), "invalid_ref /steps/2/arguments/x", "$ref:fetch is that array itself"},
		"results[0]":             {then(`{"x":"$ref:fetch.results[0].data.id"}`), "invalid_ref /steps/2/arguments/x", `write "$ref:fetch[0].data.id"`},
		"results.id":             {then(`{"x":"$ref:fetch.results.id"}`), "invalid_ref /steps/2/arguments/x", `write "$ref:fetch[0].data.id"`},
		"summary":                {then(`{"x":"$ref:fetch.summary.ok"}`), "invalid_ref /steps/2/arguments/x", "$ref:fetch[0].status"},
		"data":                   {then(`{"x":{"$ref":"fetch.data.id"}}`), "invalid_ref /steps/2/arguments/x/$ref", `write {"$ref": "fetch[0].data.id"}`},
		"a key in a list":        {steps(`{"id":"l","tool":"echo","for_each":{"in":[1]}},{"id":"s","tool":"echo","for_each":{"in":"$ref:l.items"}}`), "invalid_ref /steps/1/for_each/in", "$ref:l[0].data.items"},
		"a forward reference":    {steps(`{"id":"s","tool":"echo","arguments":{"x":"$ref:l.a"}},{"id":"l","tool":"echo","for_each":{"in":[1]}}`), "invalid_ref /steps/0/arguments/x", "$ref:l[0].data.a"},
		"a longer list":          {each(`{"in":[`+strings.TrimSuffix(strings.Repeat("1,", plan.MaxItems+1), ",")+`]}`, x), "limit_exceeded /steps/1/for_each/in", "split the step"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, r := plan.Parse([]byte(c.plan), corpusTools(t))
			require.Nil(t, p)
			require.Equal(t, []string{c.at}, found(r.Problems), "%v", r.Problems)
			require.Contains(t, r.Problems[0].Hint, c.hint)
			require.Less(t, len(r.Problems[0].Message)+len(r.Problems[0].Hint), 600)
		})
	}
}

func TestForEachAccepts(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		each(`{"in":"$ref:list.items"}`, `{"x":"$ref:item","y":"see ${ref:item.a}, $ref:item.","z":{"$ref":"item"},"w":"$ref:item.a || $ref:list.b || 1"}`),
		each(`{"in":"$ref:list.items || $ref:list.other"}`, `"{\"x\":\"$ref:item.a\"}"`),
		each(`{"in":{"$ref":"list"}}`, `{"$ref":"item"}`),
		each(`{"in":[]}`, `{}`),
		each(`{"in":[{"a":"$ref:list.x"},"x ${ref:list.y}",[{"$ref":"list"}]]}`, `{"x":"$ref:item"}`),
		each(`{"in":["$$ref:x",{"$$ref":1}]}`, `null`),
		each(`{"in":[`+strings.TrimSuffix(strings.Repeat("1,", plan.MaxItems), ",")+`]}`, `{"x":"$ref:item"}`),
		steps(`{"id":"a","tool":"echo","for_each":{"in":[1]}},{"id":"b","tool":"echo","for_each":{"in":[2]},"arguments":{"x":"$ref:item"}}`),
		steps(`{"id":"a","tool":"echo","for_each":{"in":[1]}},{"id":"b","tool":"echo","for_each":{"in":"$ref:a"},"arguments":{"x":"$ref:item.data"}}`),
		steps(`{"id":"a","tool":"echo","for_each":{"in":[1]}},{"id":"b","tool":"echo","arguments":{"v":["$ref:a","$ref:a[0]","$ref:a.0.data","$ref:a[1].status","$ref:a[1].error.code","$ref:a[1][\"index\"]","$ref:a[1].data[0]"]}}`),
		// Without a for_each, "item" is a step like any other.
		steps(`{"id":"item","tool":"echo"},{"id":"b","tool":"echo","arguments":{"x":"$ref:item.a"}}`),
		steps(`{"id":"item","tool":"echo"},{"id":"b","tool":"echo","for_each":{"in":"$ref:item","as":"i"},"arguments":{"x":"$ref:item.a","y":"$ref:i"}}`),
	} {
		p, r := plan.Parse([]byte(body), corpusTools(t))
		require.NotNil(t, p, "%v: %s", r.Problems, body)
		require.Empty(t, r.Warnings)
	}
	_, r := plan.Parse([]byte(each(`{"in":[1],"where":"x > 1"}`, `{}`)), nil)
	require.Empty(t, r.Problems)
	require.Equal(t, []string{"unknown_field /steps/1/for_each/where"}, found(r.Warnings))
}

// Items are unknown until the step runs: only what is known of the arguments is checked against the schema.
func TestItemsAreHolesForTheSchema(t *testing.T) {
	t.Parallel()
	weather := func(arguments string) []string {
		_, r := plan.Parse([]byte(steps(`{"id":"w","tool":"get_weather","for_each":{"in":["Tokyo"],"as":"city"},"arguments":`+arguments+`}`)), corpusTools(t))
		return found(r.Problems)
	}
	require.Empty(t, weather(`{"location":"$ref:city"}`))
	require.Empty(t, weather(`{"location":"$ref:city.name, Japan"}`))
	require.Empty(t, weather(`{"$ref":"city"}`))
	require.Equal(t, []string{"invalid_arguments /steps/0/arguments"}, weather(`{"place":"$ref:city"}`))
	require.Equal(t, []string{"invalid_arguments /steps/0/arguments/location"}, weather(`{"location":["$ref:city"]}`))
}

// All references of a step count, those in the list too.
func TestForEachLimitsReferences(t *testing.T) {
	t.Parallel()
	refs := func(n int, name string) string {
		return strings.TrimSuffix(strings.Repeat(`"$ref:`+name+`",`, n), ",")
	}
	plans := func(list, args int) []string {
		_, r := plan.Parse([]byte(each(`{"in":[`+refs(list, "list")+`]}`, `{"x":[`+refs(args, "item")+`]}`)), nil)
		return found(r.Problems)
	}
	require.Empty(t, plans(plan.MaxRefs, 0))
	require.Empty(t, plans(56, plan.MaxRefs-56))
	require.Equal(t, []string{"limit_exceeded /steps/1/arguments"}, plans(57, plan.MaxRefs-56))
	require.Equal(t, []string{"limit_exceeded /steps/1/for_each/in"}, plans(plan.MaxRefs+1, 5))
	_, r := plan.Parse([]byte(each(`{"in":[1]}`, `{"x":"$ref:item.`+strings.Repeat("x", plan.MaxPath)+`"}`)), nil)
	require.Equal(t, []string{"limit_exceeded /steps/1/arguments/x"}, found(r.Problems))
}

func TestForEachInCycles(t *testing.T) {
	t.Parallel()
	_, r := plan.Parse([]byte(steps(`{"id":"a","tool":"t","for_each":{"in":[1,"$ref:b"]},"arguments":{"x":"$ref:b"}},{"id":"b","tool":"t","arguments":{"x":"$ref:a"}}`)), nil)
	require.Equal(t, []string{"cycle /steps/0/for_each/in/1"}, found(r.Problems))
	_, r = plan.Parse([]byte(steps(`{"id":"a","tool":"t","for_each":{"in":[1,"$ref:c"]},"arguments":"{\"y\":\"$ref:item\",\"x\":\"$ref:b\"}"},{"id":"b","tool":"t","arguments":{"x":"$ref:a"}},{"id":"c","tool":"t"}`)), nil)
	require.Equal(t, []string{"cycle /steps/0/arguments/x"}, found(r.Problems))
	_, r = plan.Parse([]byte(steps(`{"id":"a","tool":"t","for_each":{"in":"$ref:b"}},{"id":"b","tool":"t","depends_on":["a"]}`)), nil)
	require.Equal(t, []string{"cycle /steps/0/for_each/in"}, found(r.Problems))
}

// items gives the items of the list in a for_each, as JSON, or the code of the error in angle brackets.
func listItems(t *testing.T, in, options string) string {
	t.Helper()
	body := `{"steps":[{"id":"a","tool":"t"},{"id":"b","tool":"t"},{"id":"gone","tool":"t"},
		{"id":"s","tool":"t","for_each":{"in":` + in + `}}]` + options + `}`
	p := parsed(t, body)
	all, err := p.Items(3, results)
	again, sameErr := p.NewResolver().Items(3, results)
	require.Equal(t, all, again)
	require.Equal(t, err, sameErr)
	if err != nil {
		require.NotEmpty(t, err.Message)
		require.NotEmpty(t, err.Hint+options)
		return "<" + string(err.Code) + "> " + err.Message
	}
	texts := []string{}
	for _, item := range all {
		require.True(t, json.Valid(item), "%s", item)
		texts = append(texts, string(item))
	}
	return strings.Join(texts, " ; ")
}

func TestItems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{`"$ref:a.list"`, `10 ; {"id":"x"} ; [1, 2] ; null ; "5"`},
		{`{"$ref":"a.list"}`, `10 ; {"id":"x"} ; [1, 2] ; null ; "5"`},
		{`"$ref:gone.x || $ref:a.list[2]"`, `1 ; 2`},
		{`"$ref:a.deep.a.b"`, `{"c" : [ 7 ] }`},
		{`[]`, ``},
		{`[ ]`, ``},
		{`[ 1 , "$ref:a.temp" , {"x" : "$ref:a.big"}, "a ${ref:a.city}", "$$ref:a", {"$ref":"a.no"} ]`, `1 ; 21.50 ; {"x" : 12345678901234567890} ; "a Tokyo" ; "$ref:a" ; null`},
		{`[["$ref:a.list"],"$ref:gone"]`, `[[10,{"id":"x"},[1, 2],null,"5"]] ; null`},
		{`"$ref:a.city"`, `<unresolved_ref> there is no list: $ref:a.city is a string`},
		{`"$ref:a"`, `<unresolved_ref> there is no list: $ref:a is an object`},
		{`"$ref:a.temp"`, `<unresolved_ref> there is no list: $ref:a.temp is a number`},
		{`"$ref:a.no"`, `<unresolved_ref> there is no list: $ref:a.no is null or missing`},
		{`"$ref:b"`, `<unresolved_ref> there is no list: $ref:b is null or missing`},
		{`"$ref:gone.items"`, `<unresolved_ref> there is no list: $ref:gone.items found nothing; step "gone" did not succeed`},
		{`"$ref:a.city.x"`, `<unresolved_ref> $ref:a.city.x: what is there is a string, which has no key "x"`},
	} {
		require.Equal(t, c.want, listItems(t, c.in, ""), c.in)
	}
	require.Contains(t, listItems(t, `"$ref:gone.items"`, `,"on_missing":"error"`), "<unresolved_ref>")
	require.Contains(t, listItems(t, `["$ref:gone.items"]`, `,"on_missing":"error"`), "<unresolved_ref>")
}

func TestItemsAreLimited(t *testing.T) {
	t.Parallel()
	p := parsed(t, each(`{"in":"$ref:list"}`, `{}`))
	list := func(n int) func(int) ([]byte, bool) {
		body := []byte("[" + strings.TrimSuffix(strings.Repeat("1,", n), ",") + "]")
		return func(int) ([]byte, bool) { return body, true }
	}
	all, err := p.Items(1, list(plan.MaxItems))
	require.Nil(t, err)
	require.Len(t, all, plan.MaxItems)
	_, err = p.Items(1, list(plan.MaxItems+1))
	require.Equal(t, fault.InvalidArguments, err.Code)
	require.Contains(t, err.Message, "10001 items")
	require.NotEmpty(t, err.Hint)

	p = parsed(t, each(`{"in":["$ref:list","$ref:list"]}`, `{}`))
	half := []byte(`"` + strings.Repeat("x", plan.MaxOutput/2) + `"`)
	_, err = p.Items(1, func(int) ([]byte, bool) { return half, true })
	require.Equal(t, fault.TooLarge, err.Code)
}

// Items share memory, but none of them can grow into the next.
func TestItemsCannotGrow(t *testing.T) {
	t.Parallel()
	p := parsed(t, each(`{"in":"$ref:list"}`, `{}`))
	body := []byte(`[1,2]`)
	all, err := p.Items(1, func(int) ([]byte, bool) { return body, true })
	require.Nil(t, err)
	_ = append(all[0], "33"...)
	require.Equal(t, `[1,2]`, string(body))
}

func TestItemArguments(t *testing.T) {
	t.Parallel()
	item := `{"id":7.0,"name":"x\"y","list":[{"a":1}],"none":null}`
	for _, c := range []struct{ value, want string }{
		{`"$ref:item"`, item},
		{`"$ref:item.id"`, `7.0`},
		{`{"$ref":"item.list[0].a"}`, `1`},
		{`"no. ${ref:item.id}: $ref:item.name."`, `"no. 7.0: x\"y."`},
		{`"$ref:item.none || $ref:a.none || $ref:item.id"`, `7.0`},
		{`"$ref:item.nope || \"-\""`, `"-"`},
		{`"$ref:item.nope"`, `null`},
		{`["$ref:a.temp","$ref:item.list"]`, `[21.50,[{"a":1}]]`},
		{`"$$ref:item"`, `"$ref:item"`},
		{`"$ref:item.name.x"`, `<unresolved_ref>`},
	} {
		p := parsed(t, `{"steps":[{"id":"a","tool":"t"},{"id":"s","tool":"t","for_each":{"in":[1]},"arguments":{"v":`+c.value+`}}]}`)
		for _, resolve := range []func(int, []byte, func(int) ([]byte, bool)) ([]byte, *fault.Error){p.ItemArguments, p.NewResolver().ItemArguments} {
			args, err := resolve(1, []byte(item), results)
			if err != nil {
				require.Equal(t, c.want, "<"+string(err.Code)+">")
				require.Contains(t, err.Hint, "the item as a whole")
				continue
			}
			require.Equal(t, `{"v":`+c.want+`}`, string(args), c.value)
		}
	}
	p := parsed(t, `{"steps":[{"id":"s","tool":"t","for_each":{"in":[1]},"arguments":{"$ref":"item"}}]}`)
	args, err := p.ItemArguments(0, []byte(item), results)
	require.Nil(t, err)
	require.Equal(t, item, string(args))
	_, err = p.ItemArguments(0, []byte(`[1]`), results)
	require.Equal(t, fault.InvalidArguments, err.Code)
	require.Contains(t, err.Message, "$ref:item")

	p = parsed(t, `{"on_missing":"error","steps":[{"id":"s","tool":"t","for_each":{"in":[1]},"arguments":{"x":"$ref:item.a"}}]}`)
	_, err = p.ItemArguments(0, []byte(`{}`), results)
	require.Equal(t, fault.UnresolvedRef, err.Code)
}

// The resolver remembers its way around results, and must not take one item for another.
func TestResolverTellsItemsApart(t *testing.T) {
	t.Parallel()
	p := parsed(t, each(`{"in":"$ref:list"}`, `{"x":"$ref:item.deep.list[40].n","y":"$ref:list[40].deep.list[40].n"}`))
	var all []string
	for i := range 50 {
		all = append(all, fmt.Sprintf(`{"before":"%s","deep":{"list":[%s]}}`, strings.Repeat("x", 9000+i), repeat(45+i%3, fmt.Sprintf(`{"text":"%s","n":"%d-%%d"}`, strings.Repeat("y", 300+i), i))))
	}
	body := []byte("[" + strings.Join(all, " ,") + "]")
	result := func(int) ([]byte, bool) { return body, true }
	r := p.NewResolver()
	items, err := r.Items(1, result)
	require.Nil(t, err)
	require.Len(t, items, 50)
	for i := range items {
		require.Equal(t, all[i], string(items[i]))
		args, err := r.ItemArguments(1, items[i], result)
		require.Nil(t, err)
		require.Equal(t, fmt.Sprintf(`{"x":"%d-40","y":"40-40"}`, i), string(args))
	}
}

func BenchmarkItemArguments(b *testing.B) {
	p := parsed(b, each(`{"in":"$ref:list"}`, `{"id":"$ref:item.id","text":"no. ${ref:item.id}"}`))
	item := []byte(`{"name":"some name","id":12345}`)
	result := func(int) ([]byte, bool) { return nil, false }
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.ItemArguments(1, item, result); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkItems10000(b *testing.B) {
	p := parsed(b, each(`{"in":"$ref:list"}`, `{}`))
	list := []byte("[" + repeat(10_000, `{"name":"some name","id":%d}`) + "]")
	result := func(int) ([]byte, bool) { return list, true }
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Items(1, result); err != nil {
			b.Fatal(err)
		}
	}
}
