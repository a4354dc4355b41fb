// Package servers reads what the bridge goes by: the file of MCP servers in the forms that people have it (Load), the
// lock of definitions that somebody agreed to (ReadLock), and what servers list, held against it (Judge). It starts
// nothing and connects to nothing.
//
// What a server says of its tools is what a stranger says, and models read it: texts that a person would not see are
// taken out, and what speaks to the model instead of describing the tool is pointed out.
package servers
