package model

import (
	"cmp"
	"context"
	"slices"

	"github.com/heed-go/heed/internal/setting"
)

// A Ranked is a document with its score: see Model.Rank.
type Ranked struct {
	Index int     // of the document
	Score float64 // as the model's folder says: any number, or a number from 0 to 1
	Cut   bool    // whether the model ignored a part of the query or of the document: see Model.Cuts
	Err   error   // an *InputError if the model can't read the query with the document; then there is no Score
}

// Rank scores documents by how well they answer a query, and returns the best ones, best first. Of equal scores, the
// one with the smaller Index comes first. It returns up to top documents, or all if top is 0, and after them the
// documents that the model can't read. It also returns the number of tokens that the model read.
//
// The model must be one that scores two texts: a published one with one label, such as a CrossEncoder of
// sentence-transformers, or a run of kind regression that learned pairs. The score of a published model is what its
// Number would be in an Answer, without rounding. If query and document are too long together, the longer one is cut.
//
// Like PredictAll, Rank computes batches on all processors, and returns ctx.Err() when ctx is done.
func (m *Model) Rank(ctx context.Context, question string, documents []string, top int) (ranked []Ranked, tokens int, err error) {
	if err := m.Config.Describe().Rank; err != nil {
		return nil, 0, err
	}
	if top < 0 {
		return nil, 0, setting.Errorf("%s must be at least 1, or 0 for all, got %d", setting.Path("top"), top)
	}
	pairs := make([]pair, len(documents))
	for i, d := range documents {
		pairs[i] = pair{first: question, second: d}
	}
	rows, err := m.readPairs(ctx, pairs, false, query{})
	if err != nil {
		return nil, 0, err
	}
	for _, q := range rows {
		score, err := m.Network.(regressor).score(q.choices[0])
		if err != nil {
			return nil, 0, err
		}
		ranked = append(ranked, Ranked{Index: q.place, Score: score, Cut: pairs[q.place].cut})
		tokens += pairs[q.place].tokens
	}
	slices.SortFunc(ranked, func(a, b Ranked) int { return cmp.Or(cmp.Compare(b.Score, a.Score), a.Index-b.Index) })
	if top > 0 {
		ranked = ranked[:min(top, len(ranked))]
	}
	for i, p := range pairs {
		if p.err != nil {
			ranked = append(ranked, Ranked{Index: i, Err: &InputError{documents[i], p.err}})
		}
	}
	return ranked, tokens, nil
}
