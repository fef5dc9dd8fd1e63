package diagnose

import "slices"

// finder finds many literal texts in one pass over a line (Aho and Corasick's automaton). Hundreds of
// searches a line would take minutes for a large log.
type finder struct {
	// class maps a byte to its column, 0 for all that are in no text.
	class   [256]uint16
	columns int
	next    []int32
	// owners are, by state, whose texts end there.
	owners [][]int
}

// newFinder takes the texts of each owner.
func newFinder(texts [][]string) *finder {
	f := &finder{columns: 1, owners: [][]int{nil}}
	for _, group := range texts {
		for _, text := range group {
			for i := range len(text) {
				if f.class[text[i]] == 0 {
					f.class[text[i]] = uint16(f.columns) //nolint:gosec // at most 256
					f.columns++
				}
			}
		}
	}
	f.next = make([]int32, f.columns)
	for owner, group := range texts {
		for _, text := range group {
			f.add(text, owner)
		}
	}
	f.link()
	return f
}

// add makes a path of states for a text; 0 is no state yet.
func (f *finder) add(text string, owner int) {
	state := 0
	for i := range len(text) {
		at := state*f.columns + int(f.class[text[i]])
		if f.next[at] == 0 {
			f.next[at] = int32(len(f.owners)) //nolint:gosec // some thousand
			f.next = append(f.next, make([]int32, f.columns)...)
			f.owners = append(f.owners, nil)
		}
		state = int(f.next[at])
	}
	if !slices.Contains(f.owners[state], owner) {
		f.owners[state] = append(f.owners[state], owner)
	}
}

// link fills in where to go when a path ends: to the longest end of what was read that starts a text.
func (f *finder) link() {
	fallback := make([]int32, len(f.owners))
	var queue []int32
	for column := range f.columns {
		if to := f.next[column]; to != 0 {
			queue = append(queue, to)
		}
	}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		for _, owner := range f.owners[fallback[state]] {
			if !slices.Contains(f.owners[state], owner) {
				f.owners[state] = append(f.owners[state], owner)
			}
		}
		for column := range f.columns {
			at, instead := int(state)*f.columns+column, f.next[int(fallback[state])*f.columns+column]
			if to := f.next[at]; to != 0 {
				fallback[to] = instead
				queue = append(queue, to)
			} else {
				f.next[at] = instead
			}
		}
	}
}

// find appends the owners of the texts in a line, each once, in the order of the owners.
func (f *finder) find(text string, found []int) []int {
	state := 0
	for i := range len(text) {
		state = int(f.next[state*f.columns+int(f.class[text[i]])])
		for _, owner := range f.owners[state] {
			if !slices.Contains(found, owner) {
				found = append(found, owner)
			}
		}
	}
	slices.Sort(found)
	return found
}
