package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

type object = map[string]any

// hosting is a worker that tools are added to.
type hosting struct {
	*worker.Worker
	say func(ctx context.Context, text string) error // as the agent's user
}

// does is what a tool does with its arguments.
type does func(ctx context.Context, in object) (any, error)

// tool adds one. Its arguments are written as "name kind", an optional one as "name? kind".
func (h hosting) tool(name, description string, arguments []string, do does, more ...worker.Option) {
	properties, required := object{}, []string{}
	for _, a := range arguments {
		name, kind, _ := strings.Cut(a, " ")
		name, optional := strings.CutSuffix(name, "?")
		if properties[name] = (object{"type": kind}); kind == "any" {
			properties[name] = object{}
		}
		if !optional {
			required = append(required, name)
		}
	}
	schema, _ := json.Marshal(object{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	})
	worker.Handle(h.Worker, name, do, append(more, worker.Description(description), worker.InputSchema(schema))...)
}

// says is a tool that returns a sentence with its arguments in the order in which they are named.
func (h hosting) says(name, description string, arguments []string, sentence string) {
	h.tool(name, description, arguments, func(_ context.Context, in object) (any, error) {
		values := make([]any, len(arguments))
		for i, a := range arguments {
			key, _, _ := strings.Cut(a, " ")
			values[i] = in[strings.TrimSuffix(key, "?")]
		}
		return fmt.Sprintf(sentence, values...), nil
	})
}

// destructive marks a tool as one whose calls are not made twice with the same arguments by mistake.
func destructive() worker.Option {
	yes := true
	return worker.Annotations(tool.Annotations{DestructiveHint: &yes})
}

// host adds the tools of a folder.
func host(w *worker.Worker, folder string, say func(context.Context, string) error) {
	h := hosting{w, say}
	switch folder {
	case "calculator":
		h.calculator()
	case "researcher":
		h.researcher()
	case "order":
		h.order()
	case "users", "admins", "explorer":
		h.users()
	case "database":
		h.database()
	case "files":
		h.files()
	case "admin":
		h.admin()
	case "cart":
		h.cart()
	case "personality":
		h.personality()
	case "levels":
		h.levels()
	case "offers":
		h.offers()
	case "concert":
		h.concert()
	case "chatbot":
		h.chatbot()
	case "warehouse":
		h.warehouse()
	case "limits", "checked", "approved":
		h.limits()
		h.audit()
	case "assistant", "skills", "desk", "web", "catalogue", "team":
		h.desk()
	default:
		h.seeds(folder)
	}
}

func (h hosting) calculator() {
	for name, do := range map[string]func(a, b float64) (float64, error){
		"add":      func(a, b float64) (float64, error) { return a + b, nil },
		"multiply": func(a, b float64) (float64, error) { return a * b, nil },
		"divide": func(a, b float64) (float64, error) {
			if b == 0 {
				return 0, worker.Terminal(errors.New("nothing can be divided by 0"))
			}
			return a / b, nil
		},
	} {
		h.tool(name, "Takes two numbers.", []string{"a number", "b number"}, func(_ context.Context, in object) (any, error) {
			return do(in["a"].(float64), in["b"].(float64))
		})
	}
}

func (h hosting) researcher() {
	h.says("search", "Searches for sources.", []string{"topic string"}, "a source on %s")
	h.tool("fetch", "Reads a document.", []string{"of string"}, func(_ context.Context, in object) (any, error) {
		about := object{"of": in["of"], "pages": 2}
		return worker.Result{Text: "a document of two pages", Type: "Document", Artifact: about}, nil
	})
	h.says("analyze", "Finds out what a source says.", []string{"source string"}, "what %s says")
	h.says("summarize", "Puts it in short.", []string{"text string"}, "in short, %s")
	h.says("write_report", "Writes all of it down.", []string{"summary string"}, "a report: %s")
	h.says("cite", "Cites a source.", []string{"source string"}, "[1] %s")
	h.says("format", "Formats a document.", []string{"pages integer"}, "%v pages in two columns")
	h.says("publish", "Publishes a report.", []string{"report string"}, "published: %s")
}

func (h hosting) order() {
	h.says("add_item", "Adds an item.", []string{"item string"}, "added: %s")
	for name, came := range map[string]string{"confirm": "confirmed", "ship": "on its way", "deliver": "delivered"} {
		h.says(name, "Takes an order one state on.", nil, came)
	}
	h.says("review", "Reviews a delivered order.", []string{"stars integer"}, "%v stars")
	h.says("status", "Says how an order stands.", nil, "all is well")
}

// users is what is known of people, and of one order.
func (h hosting) users() {
	people := map[string]object{
		"ann": {"id": "u1", "name": "Ann", "role": "admin"}, "bob": {"id": "u2", "name": "Bob", "role": "user"},
	}
	h.tool("search_user", "Finds users.", []string{"role? string"}, func(context.Context, object) (any, error) {
		return worker.Result{Type: "User", Artifact: []object{people["ann"], people["bob"]}}, nil
	})
	h.tool("get_user", "Returns a user.", []string{"name string"}, func(_ context.Context, in object) (any, error) {
		return people[in["name"].(string)], nil
	})
	h.tool("get_order", "Returns an order.", []string{"number integer"}, func(_ context.Context, in object) (any, error) {
		return object{"number": in["number"], "of": "u1"}, nil
	})
	h.says("update_email", "Sets the email address of a user.", []string{"user_id string", "email string"},
		"%s has the address %s")
	h.says("get_profile", "Returns a user's profile.", []string{"user_id string"}, "the profile of %s")
	h.says("cancel_order", "Cancels an order.", []string{"number integer"}, "order %v is cancelled")
}

func (h hosting) database() {
	rows := []string{"ann", "bob"}
	h.tool("query_table", "Returns all rows.", []string{"table string"},
		func(context.Context, object) (any, error) { return rows, nil })
	h.tool("insert_record", "Inserts a row.", []string{"table string", "row string"},
		func(_ context.Context, in object) (any, error) {
			rows = append(rows, in["row"].(string))
			return object{"id": len(rows)}, nil
		})
	h.tool("delete_record", "Deletes a row.", []string{"id integer"}, func(_ context.Context, in object) (any, error) {
		i := int(in["id"].(float64)) - 1
		if i < 0 || i >= len(rows) {
			return nil, worker.Terminal(fmt.Errorf("there is no row %d", i+1))
		}
		rows = append(rows[:i], rows[i+1:]...)
		return object{"deleted": true}, nil
	}, destructive())
	h.says("explain", "Explains the tables.", nil, "people: one row a person")
}

func (h hosting) files() {
	files := map[string]string{"a.txt": "an old text"}
	h.says("about", "Says what the files are.", nil, "texts of the office")
	h.tool("read_file", "Returns a file.", []string{"name string"}, func(_ context.Context, in object) (any, error) {
		return files[in["name"].(string)], nil
	})
	h.tool("list_dir", "Lists all files.", nil, func(context.Context, object) (any, error) { return len(files), nil })
	h.tool("write_file", "Writes a file.", []string{"name string", "text string"},
		func(_ context.Context, in object) (any, error) {
			files[in["name"].(string)] = in["text"].(string)
			return len(files), nil
		})
	h.tool("delete_file", "Deletes a file.", []string{"name string"}, func(_ context.Context, in object) (any, error) {
		delete(files, in["name"].(string))
		return len(files), nil
	}, destructive())
}

func (h hosting) admin() {
	h.says("get_status", "Says how the system is.", nil, "healthy")
	for _, name := range []string{"create_user", "delete_user"} {
		h.says(name, "Does so.", []string{"username string"}, name+": %s")
	}
	for _, name := range []string{"grant", "revoke"} {
		h.says(name, "Does so with a permission.", []string{"user string", "permission string"}, name+" for %s: %s")
	}
	h.says("update_config", "Sets a value.", []string{"key string", "value string"}, "%s is %s")
	h.says("backup", "Backs the configuration up.", nil, "backed up")
}

func (h hosting) cart() {
	carts := map[string][]string{}
	cart := func(in object) string { return in["cart"].(string) }
	h.tool("add_item", "Adds an item to a cart.", []string{"cart string", "item string"},
		func(_ context.Context, in object) (any, error) {
			carts[cart(in)] = append(carts[cart(in)], in["item"].(string))
			return object{"items": len(carts[cart(in)])}, nil
		})
	h.tool("view_cart", "Shows a cart.", []string{"cart string"}, func(_ context.Context, in object) (any, error) {
		return object{"cart": cart(in), "items": carts[cart(in)]}, nil
	})
	h.tool("checkout", "Pays for a cart.", []string{"cart string"}, func(_ context.Context, in object) (any, error) {
		n := len(carts[cart(in)])
		delete(carts, cart(in))
		return object{"cart": cart(in), "paid_for": n}, nil
	}, destructive())
}

func (h hosting) personality() {
	for _, name := range []string{"formal", "casual", "technical"} {
		h.says(name, "Speaks so from now on.", nil, "I am "+name+" now.")
	}
	h.says("search", "Searches the web.", []string{"topic string"}, "a page on %s")
}

func (h hosting) levels() {
	h.tool("choose", "Says which operations a level has.", []string{"level string"},
		func(_ context.Context, in object) (any, error) {
			all := []any{"read", object{"tool": "write", "needs": object{"all": []string{"read"}}}, "drop"}
			return all[:map[any]int{"basic": 1, "advanced": 2, "admin": 3}[in["level"]]], nil
		})
	for _, name := range []string{"read", "write", "drop"} {
		h.says(name, "An operation.", []string{"table string"}, name+" %s")
	}
}

// limits has an account with a note that is for nobody else.
func (h hosting) limits() {
	h.tool("look_up", "Looks a customer up.", []string{"customer string"},
		func(_ context.Context, in object) (any, error) {
			if in["customer"] == "bob" {
				return object{"customer": "bob", "owes": 5, "confidential": true}, nil
			}
			return object{"customer": in["customer"], "owes": 250}, nil
		})
	h.says("charge", "Charges a customer.", []string{"customer string", "amount number"}, "%s was charged %v")
}

// audit is a guard: it knows who has paid already.
func (h hosting) audit() {
	worker.Handle(h.Worker, "audit", func(_ context.Context, in struct {
		Tool string `json:"tool"`
		Args struct {
			Customer string `json:"customer"`
		} `json:"args"`
	}) (object, error) {
		if in.Tool == "charge" && in.Args.Customer == "cid" {
			return object{"pass": false, "reason": "cid has paid already"}, nil
		}
		return object{"pass": true}, nil
	}, worker.InputSchema(json.RawMessage(`{"type": "object"}`)), worker.Description("Says whether a call may be made."))
}

// offers are dearer by the time that somebody takes them.
func (h hosting) offers() {
	h.tool("quote", "Says what a ticket costs.", []string{"to string"}, func(context.Context, object) (any, error) {
		return object{"price": 9}, nil
	})
	h.tool("buy", "Buys a ticket.", []string{"to string", "price number"},
		func(_ context.Context, in object) (any, error) {
			if in["price"] != 12.0 {
				return nil, worker.Replan("the ticket costs 12 by now")
			}
			return object{"number": "T1"}, nil
		})
	h.says("send_ticket", "Sends a ticket.", []string{"number string"}, "ticket %s is on its way")
}

// desk has tools of all kinds.
func (h hosting) desk() {
	h.says("web_search", "Searches the web for pages.", []string{"topic string"}, "a page on %s")
	h.says("web_fetch", "Fetches a page of the web.", []string{"page string"}, "the text of %s")
	h.says("weather", "Says what the weather is in a city.", []string{"city string"}, "sun in %s")
	h.says("time", "Says what time it is in a city.", []string{"city string"}, "noon in %s")
	h.says("compare", "Compares two texts.", []string{"a string", "b string"}, "%s; but %s")
	h.says("send_mail", "Sends a mail.", []string{"to string", "text string"}, "sent to %s: %s")
	h.says("github_workflows", "Returns how scripts are written for workflows.", nil, "A workflow begins with 'on:'.")
	h.tool("buy", "Buys a thing.", []string{"what string", "customer string"},
		func(_ context.Context, in object) (any, error) {
			return worker.Result{Type: "Receipt", Artifact: object{"for": in["what"], "customer": in["customer"]}}, nil
		}, destructive())
}
