package house

import (
	"fmt"
	"slices"
	"strings"
)

// Total are the sums over packages.
type Total struct {
	Files, Lines, TestLines, Arrows, Circular, Exported int
}

func (h *House) total(which func(*Package) bool) (t Total) {
	for _, p := range h.Packages {
		if which(p) {
			t.Files += p.Files
			t.Lines += p.Lines
			t.TestLines += p.TestLines
			t.Arrows += p.Arrows
			t.Circular += p.Circular
			t.Exported += p.Exported
		}
	}
	return t
}

// Types returns the product's types with methods, those with most methods first.
func (h *House) Types() []Type {
	var all []Type
	for _, p := range h.Packages {
		if p.Product() {
			all = append(all, p.Types...)
		}
	}
	slices.SortFunc(all, bySize)
	return all
}

// largest returns the product's packages, those with most files first.
func (h *House) largest() []*Package {
	var all []*Package
	for _, p := range h.Packages {
		if p.Product() {
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b *Package) int { return b.Files - a.Files })
	return all
}

// shown is how many of the largest types and packages are named.
const shown = 8

// Markdown tells what a tree is like.
func (h *House) Markdown() string {
	var b strings.Builder
	product, lab := h.total((*Package).Product), h.total((*Package).Lab)
	b.WriteString("| measure | |\n|---|---:|\n")
	row := func(name string, value any) { fmt.Fprintf(&b, "| %s | %v |\n", name, value) }
	row("lines of the product", product.Lines)
	row("lines of its tests", product.TestLines)
	row("lines of the lab, its tests included", lab.Lines+lab.TestLines)
	row("exported names of public packages", h.total((*Package).Public).Exported)
	row("arrows between files within packages", product.Arrows)
	row("of them in circles", fmt.Sprintf("%d (%.0f %%)", product.Circular, share(product.Circular, product.Arrows)))
	b.WriteString("\n| largest types | methods | in files |\n|---|---:|---:|\n")
	for _, t := range h.Types()[:min(shown, len(h.Types()))] {
		fmt.Fprintf(&b, "| `%s.%s` | %d | %d |\n", t.Package, t.Name, t.Methods, t.Files)
	}
	b.WriteString("\n| largest packages | files | lines | arrows | in circles |\n|---|---:|---:|---:|---:|\n")
	all := h.largest()
	for _, p := range all[:min(shown, len(all))] {
		fmt.Fprintf(
			&b,
			"| `%s` | %d | %d | %d | %d (%.0f %%) |\n",
			p.Path,
			p.Files,
			p.Lines,
			p.Arrows,
			p.Circular,
			share(p.Circular, p.Arrows),
		)
	}
	return b.String()
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}
