package model

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/internal/text"
)

// An entityRule says how a published model's tags of pieces become entities. A text is divided into words, each word
// gets one tag, and neighbouring words with the same tag are an entity.
type entityRule struct {
	divide func(p *tokenizer.Pipeline, input string, pieces []piece) []word
	choose func(pieces []piece) (tag int, score float64)
	whole  bool // the windows of a text are joined before it is divided; otherwise, their entities are joined
	single bool // every word is an entity
}

// EntityRules lists the values of PredictOptions.Entities. The first is the default. The others compute what
// transformers' pipeline for token classification computes with an aggregation_strategy of the same name.
var EntityRules = choices.Table[entityRule]{
	{Name: "words", About: "the tag of the first piece of each word; words are runs of letters or digits, and single marks, as in training", Value: entityRule{divide: visibleWords, choose: firstTag, whole: true}},
	{Name: "first", About: "like words, with the words of transformers: for some tokenizers, with the marks beside them", Value: entityRule{divide: piecesWords, choose: firstTag}},
	{Name: "average", About: "like first, with the mean of the scores of a word's pieces", Value: entityRule{divide: piecesWords, choose: meanTag}},
	{Name: "max", About: "like first, with the tag of the piece whose score is greatest", Value: entityRule{divide: piecesWords, choose: surestTag}},
	{Name: "simple", About: "each piece has its own tag, so an entity may be a part of a word", Value: entityRule{divide: singlePieces, choose: firstTag}},
	{Name: "none", About: "each piece is an entity, with its whole tag", Value: entityRule{divide: singlePieces, choose: firstTag, single: true}},
}

// A piece is a token of an input with the probabilities of its tags.
type piece struct {
	tokenizer.Token
	scores []float64
}

// A word is a part of an input that gets one tag.
type word struct {
	start, end int
	pieces     []piece
}

func visibleWords(_ *tokenizer.Pipeline, input string, pieces []piece) (words []word) {
	next, last := 0, -1
	for start, end := range text.Places(input, text.VisibleWords(input)) {
		for next < len(pieces) && pieces[next].End <= start {
			next++
		}
		switch {
		case next == len(pieces) || pieces[next].Start >= end: // the tokenizer drops the word
		case next == last: // words that share a piece are one
			words[len(words)-1].end = end
		default:
			words, last = append(words, word{start, end, pieces[next : next+1]}), next
		}
	}
	return words
}

func piecesWords(p *tokenizer.Pipeline, input string, pieces []piece) (words []word) {
	for i, x := range pieces {
		if n := len(words); n > 0 && p.Continues(x.Token, input) {
			w := &words[n-1]
			w.end, w.pieces = x.End, pieces[i-len(w.pieces):i+1]
		} else {
			words = append(words, word{x.Start, x.End, pieces[i : i+1]})
		}
	}
	return words
}

func singlePieces(_ *tokenizer.Pipeline, _ string, pieces []piece) (words []word) {
	for i, x := range pieces {
		words = append(words, word{x.Start, x.End, pieces[i : i+1]})
	}
	return words
}

func best(scores []float64) (tag int, score float64) {
	for i, x := range scores {
		if x > score {
			tag, score = i, x
		}
	}
	return tag, score
}

func firstTag(pieces []piece) (tag int, score float64) { return best(pieces[0].scores) }

func surestTag(pieces []piece) (tag int, score float64) {
	for _, x := range pieces {
		if t, s := best(x.scores); s > score {
			tag, score = t, s
		}
	}
	return tag, score
}

func meanTag(pieces []piece) (tag int, score float64) {
	means := make([]float64, len(pieces[0].scores))
	for _, x := range pieces {
		for i, score := range x.scores {
			means[i] += score / float64(len(pieces))
		}
	}
	return best(means)
}

// An entityFinder is the network of a published model that gives each piece of a text a tag.
type entityFinder struct{ classifier }

// predictor keeps the output, from which join makes entities.
func (e entityFinder) predictor(s batchShape) (predictor, error) {
	return e.chooser(e, s, func(output []float32, q *query) { q.output = slices.Clone(output[:len(q.ids)*e.layout.Classes]) })
}

// pieces returns the pieces of a window, from token number first of the input up to token number end.
func (e entityFinder) pieces(q query, first, end int) (pieces []piece) {
	classes, w := e.layout.Classes, q.window
	for i, t := range w.Tokens {
		if n := w.Before + i; n >= first && n < end {
			pieces = append(pieces, piece{t, logit.Probabilities(q.output[(w.Context+i)*classes:][:classes])})
		}
	}
	return pieces
}

// join completes an answer from the windows of its input. A text has the tags of its words. A word has those from the
// window in which it is farther from the end.
func (e entityFinder) join(windows []query, o PredictOptions, a *Answer) error {
	rule, _ := EntityRules.Get(cmp.Or(o.Entities, EntityRules[0].Name))
	source := e.Config.Task.Source.(*tokenizer.Pipeline)
	var whole []piece
	first := 0
	for i, q := range windows {
		end := math.MaxInt
		if i+1 < len(windows) {
			next := windows[i+1].window.Before
			end = next + (q.window.Before+len(q.window.Tokens)-next)/2
		}
		whole = append(whole, e.pieces(q, first, end)...)
		first = end
	}
	words := rule.divide(source, a.Input, whole)
	tags := make([]string, len(words))
	for i, w := range words {
		tag, score := rule.choose(w.pieces)
		tags[i] = e.Config.Task.Classes[tag]
		a.LogProb += math.Log(score)
	}
	a.Text = strings.Join(tags, " ")
	if len(windows) == 1 || rule.whole {
		a.Spans = e.group(rule, words, a.Input)
		return nil
	}
	var spans []Span
	for _, q := range windows {
		spans = append(spans, e.group(rule, rule.divide(source, a.Input, e.pieces(q, 0, math.MaxInt)), a.Input)...)
	}
	a.Spans = once(spans)
	return nil
}

// group returns the entities of words: neighbours with the same tag, up to a prefix, unless that is B.
func (e entityFinder) group(rule entityRule, words []word, input string) []Span {
	spans, last := []Span{}, ""
	var scores []float64 // number of words of each span
	for _, w := range words {
		tag, score := rule.choose(w.pieces)
		label := e.Config.Task.Classes[tag]
		kind, begins := strings.CutPrefix(label, "B-")
		if !begins {
			kind = strings.TrimPrefix(label, "I-")
		}
		if n := len(spans) - 1; n >= 0 && kind == last && !begins && !rule.single {
			spans[n].End = w.end
			spans[n].Score += score
			scores[n]++
			continue
		}
		last = kind
		if _, after, ok := strings.Cut(label, "-"); ok && !rule.single {
			label = after
		}
		spans, scores = append(spans, Span{Label: label, Start: w.start, End: w.end, Score: score}), append(scores, 1)
	}
	for i := range spans {
		s := &spans[i]
		s.Score /= scores[i]
		s.Text = input[s.Start:s.End]
	}
	return slices.DeleteFunc(spans, func(s Span) bool { return s.Label == "O" || s.Text == "" })
}

// once returns the spans of several windows in order. Of spans that overlap, it keeps the longest, and of equally long
// ones that with the greatest score.
func once(spans []Span) []Span {
	slices.SortStableFunc(spans, func(a, b Span) int { return a.Start - b.Start })
	kept := []Span{}
	for _, s := range spans {
		n := len(kept) - 1
		if n < 0 || s.Start >= kept[n].End {
			kept = append(kept, s)
		} else if c := cmp.Compare(utf8.RuneCountInString(s.Text), utf8.RuneCountInString(kept[n].Text)); c > 0 || c == 0 && s.Score > kept[n].Score {
			kept[n] = s
		}
	}
	return kept
}
