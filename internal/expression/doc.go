// Package expression is the language of conditions ("if", "until") and of calculations ("$calc"): it compiles a text
// and evaluates it over what its references find.
//
//	$ref:weather.temp > 20 and $ref:weather.sky in ["sunny", "clear"]
//	round(sum($ref:lines[*].total) * 1.19, 2)
//	$ref:order.coupon ?? "none"
//
// What an expression may have, from what binds most to what binds least:
//
//	$ref:a.x  20.5  "text"  'text'  true  false  null  [1, 2]  (…)  f(…)
//	??                    the left side, or the right one where the left is null
//	- +                   in front of a number
//	* / %
//	not !                 brackets are asked for before a comparison: not (a == b)
//	+ -                   of numbers; texts are put together in templates
//	== != < <= > >=       a < b < c is a < b and b < c
//	in  contains  startsWith  endsWith  matches, each of them also with not before it
//	and &&
//	or ||
//	a ? b : c
//
// Functions: len (characters of a string, items of an array, members of an object), lower, upper, trim, truthy (of
// anything, what a condition of one reference comes to), abs, round(x, digits), over numbers and arrays of them sum,
// product, min, max, and those that put values together: put(object, "key", value, …), merge of objects, concat of arrays
// or of strings. There is nothing else: no variables, no functions to write, no time, no chance, no other access to a
// value than the path of its reference. So an expression always ends, and comes to the same everywhere.
//
// # References
//
// They are the plan's, in every form that its Reader knows, without quotes, and end at the latest before an operator.
// A "-" belongs to a step's id, as in $ref:fetch-1.count; in the path it is refused, since $ref:a.total-5 may be a
// difference or a key: write $ref:a.total - 5 or $ref:a["total-5"]. Within quotes a reference is refused too; where
// its text is meant, its dollar is doubled, as everywhere in a plan.
//
// # Numbers
//
// Numbers are decimals, so that 0.1 + 0.2 is 0.3. They are compared with all of their digits, of which there may be
// 1,000. To calculate with one, and after each step, it is rounded to 34 digits, a half away from zero; whole numbers
// are exact that far. A sign, abs, min and max keep all digits, and round looks at all of them. Beside 0, numbers lie
// between 10^-6144 and 10^6144. The remainder % has the sign of its right side, as the tool remainder has. Results
// are written as short as they are exact, 2.50 as 2.5 and 1e3 as 1000, and with an exponent only where they would
// have more than 100 digits.
//
// # null
//
// A reference to nothing is null. == and != compare with it, ?? replaces it, ? : and conditions take it for false, a
// list may hold it, and sum, product, min and max leave it out: of nothing they are 0, 1, null and null. put, merge and
// concat leave it out too, and are null of nothing. Elsewhere
// null makes null: comparing, calculating, functions, not. Of and and or it is "not known", as in SQL: false and null
// is false, true and null is null, true or null is true. What is decided by its left side does not look at its right
// one.
//
// # Other values
//
// == is false between values of different kinds, and deep between arrays and objects; < and its like take two numbers
// or two strings, which are compared byte by byte. in and contains look for an item in an array, in for a key in an
// object, contains for a part in a string. The right side of matches is a pattern of RE2 in quotes, where backslashes
// are the pattern's own; in other strings escapes are those of JSON, and \'.
//
// # Errors
//
// invalid_condition is found by Compile, condition_failed by an evaluation: operands of wrong kinds, a division by
// zero, numbers out of range, and more than an evaluation may read (Limits) or do. Messages tell what stood where and
// of which kind it was, but never a value: plans are read by others than data. All limits are counted, never timed,
// so that an expression fails everywhere or nowhere.
//
// # How it works
//
// The text is taken apart into tokens, which a parser by precedence makes a tree of; evaluating walks that tree. There
// is nothing between: no checker, no machine. testdata/expressions.txt guards every change of this package, and of Go's
// tables of Unicode: another answer there is another language.
package expression
