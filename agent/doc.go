// Package agent is the pure part of agents: loops in which a planner, mostly a language model, is asked again and again
// what to do next. It reads the definition of an agent, and says which tools its planner is shown, which of them are
// locked, what a message about that says, and which calls of an answer may run. It does nothing itself: it knows no
// clock and no I/O, and the loop that asks planners and runs calls is not in it.
//
// # One rule
//
// An entry, which is a tool as a planner is shown it, has a condition over facts, and sets facts when it succeeds. All
// forms in which an entry can be written are sugar for that:
//
//	"search"                                               true
//	{"tool": "analyze", "needs": {"all": ["search"]}}      $succeeded.search
//	{"tool": "ship", "in": ["CONFIRMED"], "to": "SHIPPED"} $state in ["CONFIRMED"]; sets $state
//	{"chain": "User", "tools": ["update_email"]}           $bound.User != null
//	{"unfold": "db", "tools": ["query"]}                   of query: $opened.db != null
//
// Entry.Condition and Entry.Sets return them; conditions are expressions as in plans.
//
// # Facts
//
//	$called.t      the tool t was called, and succeeded or failed
//	$succeeded.t   it succeeded
//	$state         the state of the state machine; $state.x is what calls have written at x
//	$artifact.T    the last object of the type T that a tool returned, by its full name or what stands behind the last dot
//	$opened.f      the arguments by which the facade f was opened last; null for a closed one
//	$bound.T       the object that the chain of T acts upon; null for none
//	$round         the number of the round, from 0
//	$input         what the agent was called with
//
// Tools are named as the registry has them, whatever the planner calls them.
//
// # Answers
//
// Read takes what a planner returned, in any of four dialects, mends slips mechanically, and makes a document of the plan
// language of it. Admit says which of its calls may run and what they wait for, Ready asks the gate once more.
//
// # Requests
//
// Package agent/request renders what a planner is asked, from a definition and what the rounds came to.
//
// # Budgets
//
// Spending says what is left of a budget, reserves what a call of a model may come to before it is asked, and divides
// what is left among agents below.
//
// # Errors
//
// Parse finds all that is wrong with a definition at once, also what no single entry is wrong with: names that meet,
// states that nothing leads out of, tools that need each other, names of tools, groups, categories and states that are
// none. Each problem has a code of package fault, a JSON pointer, a message and a hint.
package agent
