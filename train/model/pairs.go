package model

import (
	"context"
	"errors"
	"strings"
)

// A pair is two texts that a model reads together.
type pair struct {
	first, second string

	tokens int   // that the model read
	cut    bool  // whether the model ignored a part of the texts
	err    error // why the model can't read them
}

// readPairs asks the model about pairs. It sets the other fields of each, and returns the queries of those without an
// err, with the fields of q. With onlyFirst, a published model cuts only the first text of a pair that is too long.
func (m *Model) readPairs(ctx context.Context, pairs []pair, onlyFirst bool, q query) (rows []query, err error) {
	q.mixture = m.Mixture
	sources := make([]string, len(pairs))
	for i := range pairs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p := &pairs[i]
		sources[i] = strings.ReplaceAll(p.first, "\t", " ") + "\t" + strings.ReplaceAll(p.second, "\t", " ") // as rows of files are joined
		row := q
		if m.Config.Published() {
			row.ids, p.cut, p.err = m.Config.Task.Pair(p.first, p.second, onlyFirst)
		} else if b, a := m.encode(sources[i]); a.Err != nil {
			p.err = errors.Unwrap(a.Err)
		} else {
			row.ids, p.cut = m.query(b).ids, a.Cut
		}
		if row.place, p.tokens = i, len(row.ids); p.err == nil {
			rows = append(rows, row)
		}
	}
	return rows, m.compute(ctx, sources, rows, q, 1)
}
